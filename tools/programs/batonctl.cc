// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A view of a running cluster, from any of its workers:
//   batonctl status --worker=worker1=127.0.0.1:2901

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "rpc/agent.h"
#include "rpc/introspection.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/grpc.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, worker, "",
          "any worker of the cluster, as name=host:port; baton-worker "
          "--log=info prints it");
ABSL_FLAG(std::string, cluster, "baton", "name of the cluster");
ABSL_FLAG(absl::Duration, timeout, absl::Seconds(5),
          "how long to wait for each worker");

namespace baton::tools {
namespace {

constexpr char kUsage[] =
    "usage: batonctl status --worker=NAME=HOST:PORT\n"
    "Prints what each worker of a running cluster owns and does.";

// More than any worker's.
constexpr rpc::Rank kObserver{1 << 30};

absl::StatusOr<std::unique_ptr<rpc::Agent>> Observe(
    const rpc::WorkerInfo& worker) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<rpc::Transport> transport,
      rpc::MakeGrpcTransport({.cluster = absl::GetFlag(FLAGS_cluster),
                              .registry_digest = rpc::ObserverDigest(),
                              .observer_digest = rpc::ObserverDigest()}));
  rpc::AgentOptions options;
  options.self = {.name = absl::StrCat("batonctl-", ::getpid()),
                  .rank = kObserver,
                  .incarnation = std::random_device()() + uint64_t{1},
                  .address = transport->address()};
  options.peers = {worker};
  options.default_timeout =
      absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_timeout));
  return rpc::Agent::Start(std::move(options), rpc::Registry(),
                           std::move(transport));
}

absl::Status PrintStatus(rpc::Agent& agent, const rpc::WorkerInfo& entry) {
  using rpc::Introspection;
  const auto listed =
      agent.Async<&Introspection::Workers>(entry.name).Await(kNoLimit);
  RETURN_IF_ERROR(
      Annotate(listed.status(), absl::StrCat("asked ", entry.address)));
  absl::Status result;
  for (const rpc::WorkerInfo& worker : *listed) {
    if (worker.rank == kObserver) continue;
    if (worker.name != entry.name) agent.AddPeer(worker);
    const auto info =
        agent.Async<&Introspection::Describe>(worker.name).Await(kNoLimit);
    if (info.ok()) {
      std::printf("%s\n", info->ToString().c_str());
    } else {
      std::printf("%s at %s: %s\n", worker.name.c_str(), worker.address.c_str(),
                  std::string(info.status().message()).c_str());
      result = info.status();
    }
  }
  return result;
}

absl::Status Main(const std::vector<std::string>& words) {
  if (words != std::vector<std::string>{"status"})
    return absl::InvalidArgumentError("the one command is: batonctl status");
  if (absl::GetFlag(FLAGS_timeout) <= absl::ZeroDuration())
    return absl::InvalidArgumentError("--timeout must be more than 0");
  // What a worker prints may go on with its address on this machine alone.
  const std::string flag = absl::GetFlag(FLAGS_worker);
  ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> entries,
                   rpc::ParseWorkerList(flag.substr(0, flag.find(';'))));
  if (entries.size() != 1)
    return absl::InvalidArgumentError("--worker names one, as name=host:port");
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   Observe(entries[0]));
  const absl::Status status = PrintStatus(*agent, entries[0]);
  const absl::Status left =
      agent->Shutdown({.timeout = std::chrono::seconds(2),
                       .mode = rpc::ShutdownOptions::Mode::kNow});
  return status.ok() ? left : status;
}

}  // namespace
}  // namespace baton::tools

int main(int argc, char** argv) {
  using namespace baton::tools;
  return ExitCode(Main(ParseFlagsOrExit(argc, argv, kUsage)));
}
