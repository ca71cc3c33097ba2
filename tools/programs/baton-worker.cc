// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The daemon that hosts a trainer's modules:
//   baton-worker --name=worker1 --rendezvous=10.0.0.1:2900 --world_size=3
// It serves what dist::RegisterStock and its plug-ins register until SIGINT or
// SIGTERM.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/stock.h"
#include "rpc/cluster.h"
#include "rpc/plugin.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"
#include "tools/daemon.h"
#include "tools/serve.h"
#include "tools/view/metrics_server.h"
#include "tools/view/prometheus.h"

ABSL_FLAG(std::string, cores, "",
          "the only cores to use, as in 0-2,5; default all that it may");
ABSL_FLAG(int, threads, 0, "compute threads; default one a core");
ABSL_FLAG(absl::Duration, shutdown_timeout, absl::Seconds(3),
          "how long to wait, once asked to end, for others to give back what "
          "they hold");
ABSL_FLAG(std::vector<std::string>, plugin, {},
          "shared libraries with modules of your own, divided by commas: see "
          "docs/remote_modules.md");
ABSL_FLAG(int, metrics_port, -1,
          "serve metrics for Prometheus at this port, path /metrics; 0: any "
          "free one; -1: do not");
ABSL_FLAG(
    std::string, metrics_host, "127.0.0.1",
    "address that serves metrics; others than loopback let everybody read "
    "them");
ABSL_FLAG(std::string, log, "",
          "least level of the lines on standard error: debug, info, warning "
          "or error; default BATON_LOG, else warning");

namespace baton::tools {
namespace {

constexpr char kUsage[] =
    "usage: baton-worker --name=NAME --rendezvous=HOST:PORT --world_size=N\n"
    "   or: baton-worker --name=NAME --peers=NAME=HOST:PORT,...\n"
    "Joins a cluster and hosts modules for its trainers until SIGINT or\n"
    "SIGTERM; then finishes what is under way and reports what is left.";

absl::Status SetUpLog() {
  const std::string name = absl::GetFlag(FLAGS_log);
  if (name.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(
      CheckWord("--log", name, {"debug", "info", "warning", "error"}));
  SetLogLevel(*LogLevelFromName(name));
  return absl::OkStatus();
}

// Returns null if --metrics_port is not given.
absl::StatusOr<std::unique_ptr<MetricsPort>> PortForMetrics() {
  const int port = absl::GetFlag(FLAGS_metrics_port);
  if (port == -1) return nullptr;
  return MetricsPort::Make(absl::GetFlag(FLAGS_metrics_host), port);
}

std::unique_ptr<MetricsServer> ServeMetrics(MetricsPort& port,
                                            const rpc::Agent& agent) {
  auto server = port.Serve([&agent] {
    return PrometheusText(agent.GetDebugInfo(), UseOfThisProcess());
  });
  LogInfo("metrics at http://", port.address(), "/metrics");
  return server;
}

absl::StatusOr<int> Main(char** argv) {
  RETURN_IF_ERROR(SetUpLog());
  ASSIGN_OR_RETURN(const auto cores, ParseCores(absl::GetFlag(FLAGS_cores)));
  if (absl::GetFlag(FLAGS_metrics_port) < -1 ||
      absl::GetFlag(FLAGS_metrics_port) > 65535)
    return absl::InvalidArgumentError(
        "--metrics_port is a port up to 65535, 0 for any free one, or -1");
  ASSIGN_OR_RETURN(
      const auto shutdown_timeout,
      TimeOf(FLAGS_shutdown_timeout, std::chrono::milliseconds(0)));
  RETURN_IF_ERROR(AtLeast(0, FLAGS_threads));
  RETURN_IF_ERROR(
      SetCoresAndThreads(cores, absl::GetFlag(FLAGS_threads), argv));
  ASSIGN_OR_RETURN(rpc::ClusterOptions options, ClusterOptionsFromFlags(""));
  SetLogName(options.name);
  // Takes the port before other workers hear of this one, because a port that
  // is in use ends the process.
  ASSIGN_OR_RETURN(const std::unique_ptr<MetricsPort> port, PortForMetrics());

  StopSignal stop;
  const std::string host = options.rendezvous_host;
  rpc::Registry registry;
  dist::RegisterStock(registry);
  for (const std::string& plugin : absl::GetFlag(FLAGS_plugin)) {
    RETURN_IF_ERROR(rpc::LoadPlugin(plugin, registry));
    LogInfo("loaded plug-in ", plugin);
  }
  options.agent.on_start = dist::AttachStock;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   rpc::JoinCluster(std::move(options), std::move(registry)));
  const auto metrics = port == nullptr ? nullptr : ServeMetrics(*port, *agent);
  stop.Keep();  // a reader of the next line may send a signal at once
  LogInfo("serving at ", agent->self().address, " as rank ",
          static_cast<int>(agent->self().rank), ", on ",
          agent->self().compute.ToString());
  Serve(*agent, stop, host);
  LogInfo("shutting down");
  if (agent->Shutdown({.timeout = shutdown_timeout}).ok()) return 0;
  // The agent has printed what was left behind.
  EndWithRunningHandlers(1);
}

}  // namespace
}  // namespace baton::tools

int main(int argc, char** argv) {
  using namespace baton::tools;
  ParseFlagsAloneOrExit(argc, argv, kUsage);
  const absl::StatusOr<int> code = Main(argv);
  return code.ok() ? *code : ExitCode(code.status());
}
