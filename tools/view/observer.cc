// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/observer.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/cluster.h"
#include "rpc/introspection.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/grpc.h"

namespace baton::tools {
namespace {

using rpc::Introspection;

// Between two looks at whether an answer is still awaited.
constexpr std::chrono::milliseconds kMoment{10};

// Returns OK once the answer is there.
template <typename T>
absl::Status StayFor(const Future<T>& answer,
                     const Observer::Patience& patience) {
  while (patience != nullptr && !answer.ready()) {
    if (!patience(kMoment))
      return absl::CancelledError("nobody waits for the answer any more");
  }
  return absl::OkStatus();
}

// Ends a call that runs on another thread. Thread-safe.
class CallEnder {
 public:
  // A RendezvousConnection::Watch.
  bool Watch(std::function<void()> end) {
    const MutexLock lock(mutex_);
    end_ = std::move(end);
    return !ended_;
  }
  void End() {
    const MutexLock lock(mutex_);
    ended_ = true;
    if (end_) end_();
  }

 private:
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> end_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<rpc::Agent>> StartAgent(
    const ObserverOptions& options) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<rpc::Transport> transport,
      rpc::MakeGrpcTransport({.cluster = options.cluster,
                              .registry_digest = rpc::ObserverDigest(),
                              .observer_digest = rpc::ObserverDigest(),
                              // Why nobody can be reached is known before the
                              // time of a question is up.
                              .connect_timeout = options.timeout * 4 / 5,
                              .security = options.security}));
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
    const auto entries = rpc::ParseWorkerList(
        options.worker.substr(0, options.worker.find(';')));
    RETURN_IF_ERROR(Annotate(entries.status(), "--worker"));
    if (entries->size() != 1)
      return absl::InvalidArgumentError(
          "--worker names one, as name=host:port");
    entry = entries->front();
  }
  RETURN_IF_ERROR(rpc::CheckExposure(
      options.security, "batonctl would talk to",
      options.worker.empty() ? options.rendezvous : entry.address));
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

// On a thread of its own, so that patience may end meanwhile.
absl::StatusOr<std::vector<rpc::WorkerInfo>> Observer::AskRendezvous(
    const Patience& patience) const {
  const Promise<std::vector<rpc::WorkerInfo>> promise;
  const auto answer = promise.future();
  CallEnder ender;
  std::thread asker([&] {
    promise.Set(rpc::ListWorkers(
        options_.rendezvous, options_.cluster, options_.timeout,
        {.security = options_.security}, [&ender](std::function<void()> end) {
          return ender.Watch(std::move(end));
        }));
  });
  const absl::Status stayed = StayFor(answer, patience);
  if (!stayed.ok()) ender.End();
  asker.join();
  RETURN_IF_ERROR(stayed);
  return answer.Await(kNoLimit);
}

absl::StatusOr<std::vector<rpc::WorkerInfo>> Observer::Workers(
    const Patience& patience) {
  std::vector<rpc::WorkerInfo> workers;
  if (entry_.name.empty()) {
    ASSIGN_OR_RETURN(workers, AskRendezvous(patience));
  } else {
    const auto answer = agent_->Async<&Introspection::Workers>(entry_.name);
    RETURN_IF_ERROR(StayFor(answer, patience));
    auto listed = answer.Await(kNoLimit);
    RETURN_IF_ERROR(
        Annotate(listed.status(), absl::StrCat("asked ", entry_.address)));
    workers = *std::move(listed);
  }
  for (const rpc::WorkerInfo& worker : workers) {
    if (worker.name != entry_.name) agent_->AddPeer(worker);
  }
  return workers;
}

// All are asked at a time: those that are dead hold nobody up.
absl::StatusOr<std::vector<WorkerReport>> Observer::Ask(
    const Patience& patience) {
  ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> workers,
                   Workers(patience));
  std::vector<Future<rpc::DebugInfo>> answers;
  for (const rpc::WorkerInfo& worker : workers) {
    answers.push_back(agent_->Async<&Introspection::Describe>(worker.name));
  }
  std::vector<WorkerReport> reports;
  for (size_t i = 0; i < workers.size(); ++i) {
    RETURN_IF_ERROR(StayFor(answers[i], patience));
    auto info = answers[i].Await(kNoLimit);
    WorkerReport report{.worker = workers[i], .status = info.status()};
    if (info.ok()) report.info = *std::move(info);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace baton::tools
