// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Workers under baton-run, and a trainer that kills them and tells what it and
// the others hear of it:
//   baton-run --workers=2 --spares=1 --restarts=3
//       --worker_program=restart_watcher -- restart_watcher worker1
// Lines of the trainer, for each worker that it was told to kill:
//   NAME lost after MS ms: CAUSE        as the trainer heard it
//   NAME is back after MS ms            and serves
//   worker2 heard after MS ms: CAUSE    who never talked to the one that died

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/cluster.h"
#include "rpc/spares.h"
#include "tests/support/within.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"
#include "tools/daemon.h"

namespace baton::testing {
namespace {

using Kind = rpc::MemberEvent::Kind;

// On the clock that all processes of a machine share.
int64_t NowMs() {
  return std::chrono::steady_clock::now().time_since_epoch() /
         std::chrono::milliseconds(1);
}

struct Heard {
  std::string worker;
  bool joined = false;
  std::string cause;
  int64_t at_ms = 0;

  static constexpr auto Fields() {
    return std::tuple{&Heard::worker, &Heard::joined, &Heard::cause,
                      &Heard::at_ms};
  }
};

Mutex mutex;
std::vector<Heard> events ABSL_GUARDED_BY(mutex);

std::vector<Heard> Events() {
  MutexLock lock(mutex);
  return events;
}

int64_t ProcessId() { return ::getpid(); }

void Watch(rpc::Agent& agent) {
  agent.WatchMembers([](const rpc::MemberEvent& event) {
    if (event.kind != Kind::kJoined && event.kind != Kind::kLost) return;
    MutexLock lock(mutex);
    events.push_back({event.worker.name, event.kind == Kind::kJoined,
                      std::string(event.cause.message()), NowMs()});
  });
}

// Of `all`, since then.
absl::StatusOr<Heard> Find(const std::vector<Heard>& all,
                           const std::string& worker, bool joined,
                           int64_t since) {
  for (const Heard& heard : all) {
    if (heard.worker == worker && heard.joined == joined &&
        heard.at_ms >= since)
      return heard;
  }
  return absl::DeadlineExceededError(
      absl::StrCat(worker, joined ? " is not back" : " is not lost"));
}

absl::StatusOr<Heard> Await(const std::string& worker, bool joined,
                            int64_t since) {
  absl::StatusOr<Heard> found;
  Within(std::chrono::seconds(30), [&] {
    found = Find(Events(), worker, joined, since);
    return found.ok();
  });
  return found;
}

absl::Status KillAndTell(rpc::Agent& agent, const std::string& worker) {
  ASSIGN_OR_RETURN(const int64_t process,
                   agent.Async<&ProcessId>(worker).Await());
  const int64_t killed = NowMs();
  ::kill(static_cast<pid_t>(process), SIGKILL);
  ASSIGN_OR_RETURN(const Heard lost, Await(worker, false, killed));
  std::printf("%s lost after %d ms: %s\n", worker.c_str(),
              static_cast<int>(lost.at_ms - killed), lost.cause.c_str());
  ASSIGN_OR_RETURN(const Heard back, Await(worker, true, killed));
  ASSIGN_OR_RETURN(const int64_t successor,
                   agent.Async<&ProcessId>(worker).Await());
  if (successor == process)
    return absl::InternalError("the process that was killed has answered");
  std::printf("%s is back after %d ms\n", worker.c_str(),
              static_cast<int>(back.at_ms - killed));
  ASSIGN_OR_RETURN(const auto others, agent.Async<&Events>("worker2").Await());
  ASSIGN_OR_RETURN(const Heard heard, Find(others, worker, false, killed));
  std::printf("worker2 heard after %d ms: %s\n",
              static_cast<int>(heard.at_ms - killed), heard.cause.c_str());
  return absl::OkStatus();
}

absl::Status Lead(rpc::Agent& agent, const std::vector<std::string>& workers) {
  for (const std::string& worker : workers) {
    if (!Within(std::chrono::seconds(30),
                [&] { return agent.Find(worker).ok(); }))
      return absl::NotFoundError(absl::StrCat("no ", worker));
    RETURN_IF_ERROR(KillAndTell(agent, worker));
  }
  std::printf("%zu spares, %zu others\n", rpc::Spares(agent).size(),
              rpc::OthersButSpares(agent).size());
  return absl::OkStatus();
}

absl::Status Main(const std::vector<std::string>& workers) {
  ASSIGN_OR_RETURN(rpc::ClusterOptions options,
                   tools::ClusterOptionsFromFlags("trainer"));
  options.agent.on_start = Watch;
  // Nobody hears of anything by its lease, and no place is free because of it.
  options.agent.lease = std::chrono::seconds(60);
  const bool leads = options.name == "trainer";
  rpc::Registry registry;
  registry.AddFunction<&ProcessId>();
  registry.AddFunction<&Events>();
  tools::StopSignal stop;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   rpc::JoinCluster(std::move(options), std::move(registry)));
  if (leads) return Lead(*agent, workers);
  stop.Wait();
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  const auto workers =
      baton::tools::ParseFlagsOrExit(argc, argv, "see the source");
  return baton::tools::ExitCode(baton::testing::Main(workers));
}
