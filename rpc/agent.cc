// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/agent.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
  std::vector<WorkerInfo> workers = core_->Workers();
  std::erase_if(workers, [&](const WorkerInfo& worker) {
    return worker.rank == kObserverRank && worker.name != self().name;
  });
  return workers;
}

absl::StatusOr<WorkerInfo> Agent::Find(const Target& worker) const {
  return core_->Find(worker);
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

// How an agent ends.
namespace internal {

absl::Status AgentCore::StoppedStatus() const {
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", self().name, " has shut down"));
}

bool AgentCore::shutting_down() const {
  const MutexLock lock(mutex_);
  return shutdown_begun_;
}

// Waits until `until` returns true. It is called without locks, after each
// change and at least every kAskAgain.
bool AgentCore::Wait(Clock::time_point deadline,
                     const std::function<bool()>& until) {
  constexpr std::chrono::milliseconds kAskAgain{20};
  while (!until()) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    MutexLock lock(mutex_);
    changed_.WaitUntil(mutex_, std::min(deadline, now + kAskAgain));
  }
  return true;
}

bool AgentCore::WaitIdle(Clock::time_point deadline) {
  return Wait(deadline, [this] {
    {
      MutexLock lock(mutex_);
      if (!outgoing_.empty() || !incoming_.empty() ||
          peers_.ControlWaiting() > 0) {
        return false;
      }
    }
    const Ownership::Counts counts = ownership_->counts();
    return counts.objects == 0 && counts.grants == 0 && counts.transfers == 0 &&
           discarding_ == 0;
  });
}

// The order of the steps matters. Calls end first, because they may still make
// and pass handles. Objects are released only when the other workers release
// their handles, which they do in the same order.
absl::Status AgentCore::Shutdown(const ShutdownOptions& options) {
  {
    MutexLock lock(mutex_);
    if (shutdown_begun_) return absl::OkStatus();
    shutdown_begun_ = true;
    lost_grace_ = options.lost_grace;
  }
  // A lost worker will hardly come back to one that shuts down, so the shutdown
  // does not wait for the whole lease.
  for (const PeerPtr& peer : WithPeers(&Peers::In, Peer::State::kLost)) {
    GiveUpAfter(options.lost_grace, WithPeers(&Peers::LossOf, peer),
                absl::UnavailableError("its connection was lost"));
  }
  for (const PeerPtr& peer : WithPeers(&Peers::In, Peer::State::kGone))
    FailCallsTo(*peer, absl::UnavailableError("it is lost"));
  std::string left;
  const auto deadline = Clock::now() + options.timeout;
  if (options.mode == ShutdownOptions::Mode::kGraceful) {
    Wait(deadline, [this] {
      MutexLock lock(mutex_);
      return outgoing_.empty() && incoming_.empty();
    });
    ownership_->ReleaseGrants(StoppedStatus());
    Wait(deadline, [this] {
      const Ownership::Counts counts = ownership_->counts();
      return counts.held_by_others == 0 && counts.transfers == 0 &&
             discarding_ == 0;
    });
    for (const PeerPtr& peer : WithPeers(&Peers::In, Peer::State::kUp)) {
      SendControl(WithPeers(&Peers::InfoOf, *peer),
                  {ControlKind::kLeaving, {}, {}}, nullptr);
    }
    Wait(deadline, [this] { return WithPeers(&Peers::ControlWaiting) == 0; });
    left = Leftovers();
  }
  std::vector<IncomingPtr> incoming;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    for (const auto& [due, call] : incoming_) incoming.push_back(call);
  }
  FailAllCalls(StoppedStatus());
  for (const IncomingPtr& call : incoming) {
    call->context->cancel.Cancel(StoppedStatus());
  }
  const auto now = Clock::now();
  transport_->Shutdown(
      deadline > now ? std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::min<Clock::duration>(deadline - now,
                                                     std::chrono::seconds(5)))
                     : std::chrono::milliseconds(0));
  ownership_->Close(StoppedStatus());
  Notify();
  if (options_.on_stop) options_.on_stop();
  if (left.empty()) return absl::OkStatus();
  LogWarning("worker ", self().name, " left behind: ", left);
  return absl::DeadlineExceededError(absl::StrCat(
      "worker ", self().name, " shut down and left behind: ", left));
}

void AgentCore::StopThreads() {
  timer_.Stop();
  workers_->Stop();
  inbox_->Stop();
  completions_->Stop();
}

std::string AgentCore::Leftovers() const {
  constexpr size_t kNamed = 10;
  const DebugInfo info = GetDebugInfo();
  std::vector<std::string> left;
  for (const ObjectInfo& object : info.objects) {
    if (object.holders.empty()) continue;
    left.push_back(absl::StrCat(
        object.type, " ", object.id, " held by ",
        absl::StrJoin(object.holders, ", "), ", made by ", object.made_by,
        object.made_at.empty() ? "" : " at ", object.made_at));
  }
  for (const CallInfo& call : info.outgoing) {
    left.push_back(absl::StrCat("a call of ", call.method, " at ", call.peer));
  }
  for (const CallInfo& call : info.incoming) {
    left.push_back(absl::StrCat(call.method, " running for ", call.peer));
  }
  if (info.transfers > 0) {
    left.push_back(
        absl::StrCat(info.transfers, " RRefs whose arrival is not known"));
  }
  const size_t all = left.size();
  if (all > kNamed) left.resize(kNamed);
  return absl::StrCat(
      absl::StrJoin(left, "; "),
      all > kNamed ? absl::StrCat("; and ", all - kNamed, " more") : "");
}

}  // namespace internal
}  // namespace baton::rpc
