// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/agent_core.h"
#include "rpc/introspection.h"

// How workers come and go, and what ends with them.
namespace baton::rpc::internal {

void AgentCore::AddPeer(const WorkerInfo& peer) {
  if (peer.name == self().name) return;
  // The transport must know the peer first: then a Send that fails after peers_
  // has the peer cannot have failed because the peer was unknown.
  transport_->AddPeer(peer);
  const Peers::Observed added = WithPeers(&Peers::Add, peer);
  if (added.stale()) transport_->Forget(peer);
  if (!added.joined) return;
  inbox_->Post([this, peer, replaced = added.replaced] {
    if (replaced != nullptr) OnReplaced(replaced);
    Tell({.worker = peer, .cause = {}});
  });
}

void AgentCore::RemovePeer(const std::string& name) {
  transport_->RemovePeer(name);
  RunOnInbox([this, name] {
    const absl::Status why =
        absl::UnavailableError(absl::StrCat("worker ", name, " was removed"));
    const WorkerInfo any{.name = name, .address = {}};
    if (const auto removed = WithPeers(&Peers::Remove, any, why))
      OnRemoved(*removed, MemberEvent::Kind::kLeft, why);
  });
}

void AgentCore::StrikeOff(const MemberEvent& event) {
  RunOnInbox([this, &event] {
    const auto removed =
        WithPeers(&Peers::StrikeOff, event.worker, event.cause);
    if (removed) OnRemoved(*removed, event.kind, event.cause);
  });
}

// Runs the task after all messages that have arrived, and returns when it has
// run. If the worker is added again at once, what is begun with it then must
// not be lost.
void AgentCore::RunOnInbox(Task task) {
  Promise<void> done;
  inbox_->Post([task = std::move(task), done]() mutable {
    task();
    done.Set(absl::OkStatus());
  });
  done.future().Await(kNoLimit).IgnoreError();
}

void AgentCore::OnRemoved(const Peers::Removed& removed, MemberEvent::Kind kind,
                          const absl::Status& cause) {
  transport_->Forget(removed.info);
  if (!removed.was_gone)
    return OnGone(removed.peer, {kind, removed.info, cause});
  // Calls to it that were made since it was given up can only fail now.
  EndAllWith(removed.peer, cause);
}

absl::StatusOr<WorkerInfo> AgentCore::Find(const Target& worker) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const PeerPtr peer, peers_.Find(worker));
  return peers_.InfoOf(*peer);
}

std::vector<WorkerInfo> AgentCore::Workers() { return WithPeers(&Peers::All); }

void AgentCore::WatchMembers(Agent::MemberWatcher watcher) {
  MutexLock lock(mutex_);
  watchers_.push_back(std::move(watcher));
}

// The other worker has already dropped the grants between the two from its
// tables, so this one drops them as well.
void AgentCore::OnGivenUpBy(const PeerPtr& peer) {
  const absl::Status why = absl::UnavailableError(absl::StrCat(
      "worker ", peer->name, " has given up worker ", self().name,
      ", having lost or not heard it for too long; what they held of each "
      "other is lost"));
  LogWarning(why.message());
  const WorkerInfo info = WithPeers(&Peers::InfoOf, *peer);
  Tell({MemberEvent::Kind::kLost, info, why});
  EndAllWith(peer, why);
  Tell({.worker = info, .cause = {}});
}

void AgentCore::OnLost(const WorkerInfo& worker, const absl::Status& cause) {
  using Kind = MemberEvent::Kind;
  const bool silent = absl::IsDeadlineExceeded(cause);
  const absl::Status why = absl::UnavailableError(cause.message());
  // An observer holds nothing and does not come back under the same name.
  if (worker.rank == kObserverRank) {
    const auto removed = WithPeers(&Peers::Remove, worker, why);
    if (removed) OnRemoved(*removed, Kind::kLeft, why);
    return;
  }
  const Peers::Loss loss = WithPeers(&Peers::MarkLost, worker);
  if (loss.peer == nullptr) {
    transport_->Forget(worker);
    return;
  }
  if (loss.number > 0 && (loss.leaving || silent)) {
    // Watchers are told by the code that no connection ended: it may be there.
    GiveUp(loss, loss.leaving ? Kind::kLeft : Kind::kLost, cause);
    return;
  }
  if (loss.number > 0) Tell({Kind::kBroken, worker, why});
  FailCallsTo(*loss.peer, why);
  CancelCallsFrom(*loss.peer, why);
  // If it was given up before, calls that were made since can only fail.
  if (loss.number == 0) return;
  auto may_stay_away = SilenceWithin(options_.lease);
  {
    MutexLock lock(mutex_);
    if (shutdown_begun_) may_stay_away = lost_grace_;
    // Each message that is sent tries to reconnect. This one is resent until it
    // is answered or the lease is over.
    peers_.Push(*loss.peer, {ControlKind::kPing, {}, {}}, nullptr);
  }
  GiveUpAfter(may_stay_away, loss, why);
}

void AgentCore::Tell(MemberEvent event) {
  if (event.worker.rank == kObserverRank) return;
  {
    MutexLock lock(mutex_);
    if (watchers_.empty()) return;
    events_.push_back(std::move(event));
    if (std::exchange(telling_, true)) return;
  }
  completions_->Post([this] { TellAll(); });
}

// Only one thread runs this at a time, so events are reported in order.
void AgentCore::TellAll() {
  for (;;) {
    std::vector<Agent::MemberWatcher> watchers;
    MemberEvent event;
    {
      MutexLock lock(mutex_);
      telling_ = !events_.empty();
      if (!telling_) return;
      event = std::move(events_.front());
      events_.pop_front();
      watchers = watchers_;
    }
    for (const auto& watcher : watchers) watcher(event);
  }
}

void AgentCore::GiveUpAfter(std::chrono::milliseconds delay,
                            const Peers::Loss& loss, const absl::Status& why) {
  timer_.After(delay, [this, loss, why] {
    inbox_->Post(
        [this, loss, why] { GiveUp(loss, MemberEvent::Kind::kLost, why); });
  });
}

void AgentCore::GiveUp(const Peers::Loss& loss, MemberEvent::Kind kind,
                       const absl::Status& cause) {
  bool removed = false;
  WorkerInfo info;
  {
    MutexLock lock(mutex_);
    if (!peers_.GiveUp(loss, absl::UnavailableError(cause.message()))) return;
    removed = peers_.IsRemoved(*loss.peer);
    info = peers_.InfoOf(*loss.peer);
  }
  LogInfo("gave up what worker ", info.name, " held: ", cause.message());
  if (removed) transport_->Forget(info);
  OnGone(loss.peer, {kind, info, cause});
}

void AgentCore::OnGone(const PeerPtr& peer, const MemberEvent& event) {
  EndAllWith(peer, absl::UnavailableError(absl::StrCat(
                       "worker ", peer->name,
                       " and what it had is lost: ", event.cause.message())));
  Tell(event);
}

void AgentCore::OnReplaced(const PeerPtr& old) {
  OnGone(old, {MemberEvent::Kind::kLost, WithPeers(&Peers::InfoOf, *old),
               absl::UnavailableError(
                   absl::StrCat("worker ", old->name, " was started again"))});
}

void AgentCore::EndAllWith(const PeerPtr& peer, const absl::Status& why) {
  FailCallsTo(*peer, why);
  CancelCallsFrom(*peer, why);
  ownership_->OnWorkerGone(WithPeers(&Peers::InfoOf, *peer), why);
  Notify();
}

}  // namespace baton::rpc::internal
