// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/observer.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/introspection.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/grpc.h"

namespace baton::tools {
namespace {

using rpc::Introspection;

absl::StatusOr<std::unique_ptr<rpc::Agent>> StartAgent(
    const ObserverOptions& options) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<rpc::Transport> transport,
      rpc::MakeGrpcTransport({.cluster = options.cluster,
                              .registry_digest = rpc::ObserverDigest(),
                              .observer_digest = rpc::ObserverDigest(),
                              .connect_timeout = options.timeout}));
  rpc::AgentOptions agent;
  // Observers of other machines may have the same process id.
  const uint64_t random = std::random_device()() + uint64_t{1};
  agent.self = {.name = absl::StrCat("batonctl-", ::getpid(), "-",
                                     absl::Hex(random, absl::kZeroPad8)),
                .rank = rpc::kObserverRank,
                .incarnation = random,
                .address = transport->address()};
  agent.default_timeout = options.timeout;
  return rpc::Agent::Start(std::move(agent), rpc::Registry(),
                           std::move(transport));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Observer>> Observer::Make(
    const ObserverOptions& options) {
  if (options.worker.empty() == options.rendezvous.empty()) {
    return absl::InvalidArgumentError(
        "give --worker=NAME=HOST:PORT or --rendezvous=HOST:PORT");
  }
  rpc::WorkerInfo entry;
  if (!options.worker.empty()) {
    // What a worker prints may go on with its address on this machine alone.
    ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> entries,
                     rpc::ParseWorkerList(
                         options.worker.substr(0, options.worker.find(';'))));
    if (entries.size() != 1)
      return absl::InvalidArgumentError(
          "--worker names one, as name=host:port");
    entry = entries[0];
  }
  ASSIGN_OR_RETURN(auto agent, StartAgent(options));
  std::unique_ptr<Observer> observer(new Observer(options, std::move(agent)));
  observer->entry_ = entry;
  if (!entry.name.empty()) observer->agent_->AddPeer(entry);
  return observer;
}

Observer::~Observer() {
  agent_
      ->Shutdown({.timeout = std::chrono::seconds(2),
                  .mode = rpc::ShutdownOptions::Mode::kNow})
      .IgnoreError();
}

absl::StatusOr<std::vector<rpc::WorkerInfo>> Observer::Workers() {
  std::vector<rpc::WorkerInfo> workers;
  if (entry_.name.empty()) {
    ASSIGN_OR_RETURN(workers,
                     rpc::ListWorkers(options_.rendezvous, options_.cluster,
                                      options_.timeout));
  } else {
    auto listed =
        agent_->Async<&Introspection::Workers>(entry_.name).Await(kNoLimit);
    RETURN_IF_ERROR(
        Annotate(listed.status(), absl::StrCat("asked ", entry_.address)));
    workers = *std::move(listed);
  }
  std::erase_if(workers, [](const rpc::WorkerInfo& worker) {
    return worker.rank == rpc::kObserverRank;
  });
  for (const rpc::WorkerInfo& worker : workers) {
    if (worker.name != entry_.name) agent_->AddPeer(worker);
  }
  return workers;
}

// All are asked at a time: those that are dead hold nobody up.
absl::StatusOr<std::vector<WorkerReport>> Observer::Ask() {
  ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> workers, Workers());
  std::vector<Future<rpc::DebugInfo>> answers;
  for (const rpc::WorkerInfo& worker : workers) {
    answers.push_back(agent_->Async<&Introspection::Describe>(worker.name));
  }
  std::vector<WorkerReport> reports;
  for (size_t i = 0; i < workers.size(); ++i) {
    auto info = answers[i].Await(kNoLimit);
    WorkerReport report{.worker = workers[i], .status = info.status()};
    if (info.ok()) report.info = *std::move(info);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace baton::tools
