// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Shows a running cluster, asking any of its workers or its rendezvous:
//   batonctl status --worker=worker1=127.0.0.1:2901
//   batonctl rrefs --rendezvous=127.0.0.1:2900 --watch
//   batonctl status   # finds the cluster on this machine

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "tools/address_flag.h"
#include "tools/command_line.h"
#include "tools/output_file.h"
#include "tools/security_flags.h"
#include "tools/view/cluster_tables.h"
#include "tools/view/cluster_trace.h"
#include "tools/view/live_screen.h"
#include "tools/view/live_tables.h"
#include "tools/view/local_clusters.h"
#include "tools/view/observer.h"
#include "tools/view/table.h"

ABSL_FLAG(std::string, worker, "",
          "any worker of the cluster, as name=host:port; baton-worker "
          "--log=info prints it");
ABSL_FLAG(std::string, rendezvous, "",
          "or where the workers met, as host:port or etcd://host:port,...; "
          "default BATON_RENDEZVOUS");
ABSL_FLAG(std::string, cluster, "",
          "name of the cluster; default BATON_CLUSTER, else baton");
ABSL_FLAG(absl::Duration, timeout, absl::Seconds(5),
          "how long to wait for each worker");
ABSL_FLAG(bool, json, false, "print JSON: times in ms, sizes in bytes");
ABSL_FLAG(bool, watch, false, "show it again and again, until q or Ctrl-C");
ABSL_FLAG(absl::Duration, interval, absl::Seconds(1),
          "with --watch, how long to wait before asking again");
ABSL_FLAG(int, times, 0, "with --watch, how often to ask; 0: without end");
ABSL_FLAG(double, seconds, 5, "how long to trace");
ABSL_FLAG(std::string, out, "trace.json", "where the trace goes");

namespace baton::tools {
namespace {

constexpr char kUsage[] =
    "usage: batonctl COMMAND [--cluster=NAME]\n"
    "   or: batonctl COMMAND --worker=NAME=HOST:PORT\n"
    "   or: batonctl COMMAND --rendezvous=HOST:PORT\n"
    "Shows all workers of a running cluster; without an address, of what this\n"
    "user runs on this machine. Commands:\n"
    "  status    workers, and calls under way with their ages\n"
    "  rrefs     objects: owner, type, bytes, age, holders, where they were\n"
    "            made\n"
    "  contexts  autograd contexts: creator, age, gradients\n"
    "  channels  traffic of each pair; calls, latency and bytes by method\n"
    "  trace     one trace of all workers, for ui.perfetto.dev (--seconds,\n"
    "            --out)";

constexpr int kMostSeconds = 24 * 3600;

std::string FlagOr(const std::string& flag, const char* variable,
                   const std::string& otherwise) {
  const char* value = std::getenv(variable);
  if (!flag.empty()) return flag;
  return value == nullptr || *value == '\0' ? otherwise : value;
}

absl::StatusOr<ObserverOptions> OptionsFromFlags() {
  RETURN_IF_ERROR(AtLeast(0, FLAGS_times));
  ObserverOptions options;
  ASSIGN_OR_RETURN(options.timeout, TimeOf(FLAGS_timeout));
  RETURN_IF_ERROR(TimeOf(FLAGS_interval).status());
  const double seconds = absl::GetFlag(FLAGS_seconds);
  if (!(seconds > 0 && seconds <= kMostSeconds))
    return absl::InvalidArgumentError(absl::StrCat(
        "--seconds must be more than 0, and ", kMostSeconds, " at most"));
  options.worker = absl::GetFlag(FLAGS_worker);
  options.rendezvous = absl::GetFlag(FLAGS_rendezvous);
  const bool named = !options.worker.empty();
  RETURN_IF_ERROR(
      CheckAddressFlag(FLAGS_rendezvous, named ? nullptr : "BATON_RENDEZVOUS"));
  if (!named)
    options.rendezvous = FlagOr(options.rendezvous, "BATON_RENDEZVOUS", "");
  options.cluster =
      FlagOr(absl::GetFlag(FLAGS_cluster), "BATON_CLUSTER", "baton");
  ASSIGN_OR_RETURN(options.security, SecurityFromFlags("batonctl"));
  return options;
}

TableStyle StyleOfOutput() {
  TableStyle style;
  winsize size{};
  style.color = ::isatty(STDOUT_FILENO) == 1;
  if (style.color && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    style.width = size.ws_col;
  return style;
}

// Reports the workers that did not answer: returns the last one's error, and
// prints the others'.
absl::Status Unanswered(const std::vector<WorkerReport>& reports) {
  absl::Status last;
  for (const WorkerReport& report : reports) {
    if (report.status.ok()) continue;
    if (!last.ok()) Complain(std::string(last.message()), 1);
    last = report.status;
  }
  return last;
}

std::string TextOf(const std::vector<rpc::View>& tables) {
  if (absl::GetFlag(FLAGS_json)) return TablesJson(tables);
  std::string text;
  const TableStyle style = StyleOfOutput();
  for (const rpc::View& table : tables)
    absl::StrAppend(&text, text.empty() ? "" : "\n", TableText(table, style));
  return text;
}

absl::Status Show(const std::string& command, Observer& observer,
                  LiveTables& live) {
  ASSIGN_OR_RETURN(const std::vector<WorkerReport> reports, observer.Ask());
  RETURN_IF_ERROR(
      Print(TextOf(absl::GetFlag(FLAGS_watch) ? live.Next(command, reports)
                                              : TablesOf(command, reports))));
  return Unanswered(reports);
}

// Prints the tables again and again, one below the other.
absl::Status Repeat(const std::string& command, Observer& observer) {
  LiveTables live;
  const int times = absl::GetFlag(FLAGS_times);
  ASSIGN_OR_RETURN(const auto interval, TimeOf(FLAGS_interval));
  for (int i = 0; times == 0 || i < times; ++i) {
    if (i > 0) std::this_thread::sleep_for(interval);
    // An error does not end the loop: a worker that comes back is shown then.
    const absl::Status shown = Show(command, observer, live);
    if (!shown.ok()) Complain(std::string(shown.message()), 1);
  }
  return absl::OkStatus();
}

// Redraws the tables in place; shows an error on the screen.
absl::Status ShowLive(const std::string& command, Observer& observer) {
  ASSIGN_OR_RETURN(const auto interval, TimeOf(FLAGS_interval));
  const int times = absl::GetFlag(FLAGS_times);
  LiveTables live;
  const LiveScreen screen;
  bool ends = false;  // the user has quit while an answer was awaited
  const auto patience = [&](std::chrono::milliseconds time) {
    ends = !screen.Wait(time);
    return !ends;
  };
  for (int i = 0; times == 0 || i < times; ++i) {
    if (i > 0 && !screen.Wait(interval)) break;
    const auto reports = observer.Ask(patience);
    if (ends) break;
    screen.Draw(reports.ok() ? TextOf(live.Next(command, *reports))
                             : std::string(reports.status().message()));
  }
  return absl::OkStatus();
}

absl::Status Trace(Observer& observer) {
  const std::string path = absl::GetFlag(FLAGS_out);
  RETURN_IF_ERROR(CheckOutputs(FLAGS_out));
  ASSIGN_OR_RETURN(const auto workers, observer.Workers());
  const auto time =
      absl::ToChronoMilliseconds(absl::Seconds(absl::GetFlag(FLAGS_seconds)));
  ClusterTrace trace(observer.agent(), workers);
  trace.Start(time + std::chrono::minutes(1));
  std::this_thread::sleep_for(time);
  const std::vector<WorkerTrace> traces = trace.Finish();
  RETURN_IF_ERROR(WriteOutput(path, MergedTrace(traces)));
  size_t events = 0;
  for (const WorkerTrace& worker : traces) events += worker.log.events.size();
  return Print(absl::StrCat(path, ": ", events, " events of ", traces.size(),
                            " workers; open it at ui.perfetto.dev\n"));
}

// Observes this user's only cluster on this machine; if there are several, the
// error lists their names.
absl::StatusOr<std::unique_ptr<Observer>> ObserveLocal(
    const ObserverOptions& options) {
  ASSIGN_OR_RETURN(
      std::vector<LocalCluster> found,
      FindLocalClusters(
          options, FlagOr(absl::GetFlag(FLAGS_cluster), "BATON_CLUSTER", "")));
  if (found.size() == 1) return std::move(found[0].observer);
  std::string text = "several clusters run here; name one of them:";
  for (const LocalCluster& cluster : found)
    absl::StrAppend(&text, "\n  ", NameOf(cluster));
  return absl::InvalidArgumentError(text);
}

absl::Status CheckCommand(const std::vector<std::string>& words) {
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "a command is missing, as in: batonctl status; see --help");
  }
  if (words.size() > 1) return UnexpectedArgument(words[1]);
  return CheckWord("batonctl", words[0],
                   {"status", "rrefs", "contexts", "channels", "trace"});
}

absl::Status Main(const std::vector<std::string>& words) {
  RETURN_IF_ERROR(CheckCommand(words));
  ASSIGN_OR_RETURN(const ObserverOptions options, OptionsFromFlags());
  const bool named = !options.worker.empty() || !options.rendezvous.empty();
  ASSIGN_OR_RETURN(const auto observer,
                   named ? Observer::Make(options) : ObserveLocal(options));
  if (words[0] == "trace") return Trace(*observer);
  if (absl::GetFlag(FLAGS_watch)) {
    const bool draws =
        ::isatty(STDOUT_FILENO) == 1 && !absl::GetFlag(FLAGS_json);
    return draws ? ShowLive(words[0], *observer) : Repeat(words[0], *observer);
  }
  LiveTables none;
  return Show(words[0], *observer, none);
}

}  // namespace
}  // namespace baton::tools

int main(int argc, char** argv) {
  using namespace baton::tools;
  return ExitCode(Main(ParseFlagsOrExit(argc, argv, kUsage)));
}
