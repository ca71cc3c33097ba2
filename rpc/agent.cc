// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/agent.h"

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/agent_core.h"
#include "rpc/introspection.h"
#include "rpc/worker.h"

namespace baton::rpc {
namespace {

absl::Status Check(const AgentOptions& options, const Registry& registry) {
  RETURN_IF_ERROR(CheckWorkerName(options.self.name));
  RETURN_IF_ERROR(internal::CheckAgent(options, registry));
  if (options.self.incarnation == 0) {
    return absl::InvalidArgumentError(
        "AgentOptions.self has no incarnation; it must not be 0");
  }
  for (const WorkerInfo& peer : options.peers) {
    RETURN_IF_ERROR(CheckWorkerName(peer.name));
    for (const WorkerInfo& other : options.peers) {
      if (&peer != &other && peer.name == other.name) {
        return absl::InvalidArgumentError(absl::StrCat(
            "two workers are called ", peer.name, "; names must be unique"));
      }
    }
    if (peer.name == options.self.name &&
        peer.incarnation != options.self.incarnation) {
      return absl::InvalidArgumentError(absl::StrCat(
          "another worker is called ", peer.name, "; names must be unique"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status internal::CheckAgent(const AgentOptions& options,
                                  const Registry& registry) {
  RETURN_IF_ERROR(Annotate(registry.status(), "the registry"));
  if (options.worker_threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker_threads (--rpc_threads) must be at least 1, not ",
                     options.worker_threads));
  }
  return CheckLease(options.lease);
}

absl::StatusOr<std::unique_ptr<Agent>> Agent::Start(
    AgentOptions options, Registry registry,
    std::unique_ptr<Transport> transport) {
  RETURN_IF_ERROR(Check(options, registry));
  RegisterIntrospection(registry);
  RETURN_IF_ERROR(registry.status());
  std::unique_ptr<Agent> agent(new Agent(std::make_shared<internal::AgentCore>(
      std::move(options), std::move(registry), std::move(transport))));
  RETURN_IF_ERROR(agent->core_->Start(agent.get()));
  return agent;
}

Agent::Agent(std::shared_ptr<internal::AgentCore> core)
    : core_(std::move(core)) {}

Agent::~Agent() {
  absl::Status status = Shutdown({.timeout = std::chrono::milliseconds(0),
                                  .mode = ShutdownOptions::Mode::kNow});
  if (!status.ok()) LogWarning(status.ToString());
  core_->StopThreads();
}

absl::StatusOr<Tensor> Agent::EmptyFor(const Target& worker, const Shape& shape,
                                       const TensorOptions& options) const {
  return core_->EmptyFor(worker, shape, options);
}

const WorkerInfo& Agent::self() const { return core_->self(); }

std::vector<WorkerInfo> Agent::workers() const {
  std::vector<WorkerInfo> workers = core_->peers().All();
  std::erase_if(workers, [&](const WorkerInfo& worker) {
    return worker.rank == kObserverRank && worker.name != self().name;
  });
  return workers;
}

absl::StatusOr<WorkerInfo> Agent::Find(const Target& worker) const {
  return core_->peers().Find(worker);
}

void Agent::AddPeer(const WorkerInfo& peer) { core_->AddPeer(peer); }

void Agent::RemovePeer(const std::string& name) { core_->RemovePeer(name); }

void Agent::StrikeOff(const MemberEvent& event) { core_->StrikeOff(event); }

void Agent::WatchMembers(MemberWatcher watcher) {
  core_->WatchMembers(std::move(watcher));
}

bool Agent::shutting_down() const { return core_->shutting_down(); }

std::chrono::milliseconds Agent::default_timeout() const {
  return core_->default_timeout();
}

void Agent::set_default_timeout(std::chrono::milliseconds timeout) {
  core_->set_default_timeout(timeout);
}

void Agent::SetCallScopeFactory(std::shared_ptr<CallScopeFactory> factory) {
  core_->SetCallScopeFactory(std::move(factory));
}

void Agent::SetServiceById(uint64_t id, std::shared_ptr<void> service) {
  core_->SetService(id, std::move(service));
}

std::shared_ptr<void> Agent::ServiceById(uint64_t id) const {
  return core_->Service(id);
}

Executor& Agent::executor() const { return core_->workers(); }

Timer& Agent::timer() const { return core_->timer(); }

DebugInfo Agent::GetDebugInfo() const { return core_->GetDebugInfo(); }

void Agent::AddView(const std::string& name, std::function<View()> view) {
  core_->AddView(name, std::move(view));
}

const std::shared_ptr<Tracer>& Agent::tracer() const { return core_->tracer(); }

bool Agent::AwaitIdle(std::chrono::milliseconds timeout) const {
  return core_->WaitIdle(std::chrono::steady_clock::now() + timeout);
}

absl::Status Agent::Shutdown(const ShutdownOptions& options) {
  return core_->Shutdown(options);
}

}  // namespace baton::rpc
