// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/agent_core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/introspection.h"
#include "rpc/worker.h"

namespace baton::rpc::internal {
AgentCore::AgentCore(AgentOptions options, Registry registry,
                     std::unique_ptr<Transport> transport)
    : options_(std::move(options)),
      registry_(std::move(registry)),
      transport_(std::move(transport)),
      default_timeout_ms_(options_.default_timeout.count()),
      peers_(options_.self),
      quota_(options_.max_calls_per_peer, options_.max_call_bytes_per_peer,
             options_.max_replies_per_peer),
      inbox_(std::make_shared<Inbox>("baton-inbox")),
      completions_(std::make_shared<StoppablePool>(2, "baton-complete")),
      workers_(std::make_shared<StoppablePool>(options_.worker_threads,
                                               "baton-work")) {}

AgentCore::~AgentCore() { StopThreads(); }

absl::Status AgentCore::Start(Agent* agent) {
  agent_ = agent;
  ownership_ =
      std::make_shared<Ownership>(self(), weak_from_this(), weak_from_this());
  for (const WorkerInfo& peer : options_.peers) AddPeer(peer);
  if (options_.on_start) options_.on_start(*agent);
  RETURN_IF_ERROR(transport_->Start(self(), this));
  ScheduleTick();
  return absl::OkStatus();
}

void AgentCore::AddPeer(const WorkerInfo& peer) {
  if (peer.name == self().name) return;
  // The transport must know the peer first: then a Send that fails after peers_
  // has the peer cannot have failed because the peer was unknown.
  transport_->AddPeer(peer);
  const Peers::Observed added = peers_.Add(peer);
  if (added.stale) transport_->Forget(peer);
  if (!added.joined) return;
  inbox_->Post([this, peer, replaced = added.replaced] {
    if (replaced.has_value()) OnReplaced(*replaced);
    Tell({.worker = peer, .cause = {}});
  });
}

void AgentCore::RemovePeer(const std::string& name) {
  transport_->RemovePeer(name);
  RunOnInbox([this, name] {
    const MemberEvent event{.kind = MemberEvent::Kind::kLeft,
                            .worker = {.name = name, .address = {}},
                            .cause = absl::UnavailableError(
                                absl::StrCat("worker ", name, " was removed"))};
    if (auto removed = peers_.Remove(event.worker, event.cause)) {
      OnRemoved(*removed, event);
    }
  });
}

void AgentCore::StrikeOff(const MemberEvent& event) {
  RunOnInbox([this, &event] {
    if (auto removed = peers_.StrikeOff(event.worker, event.cause)) {
      OnRemoved(*removed, event);
    }
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

void AgentCore::OnRemoved(const Peers::Removed& removed,
                          const MemberEvent& event) {
  transport_->Forget(removed.info);
  stats_.Forget(removed.info.name);
  quota_.Forget(removed.info.name);
  if (!removed.was_gone) return OnGone({event.kind, removed.info, event.cause});
  // Calls to it that were made since it was given up can only fail now.
  EndAllWith(removed.info, event.cause);
}

void AgentCore::WatchMembers(Agent::MemberWatcher watcher) {
  MutexLock lock(mutex_);
  watchers_.push_back(std::move(watcher));
}

void AgentCore::SetCallScopeFactory(std::shared_ptr<CallScopeFactory> factory) {
  MutexLock lock(mutex_);
  scope_factory_ = std::move(factory);
}

void AgentCore::SetService(uint64_t id, std::shared_ptr<void> service) {
  MutexLock lock(mutex_);
  services_[id] = std::move(service);
}

std::shared_ptr<void> AgentCore::Service(uint64_t id) const {
  MutexLock lock(mutex_);
  auto found = services_.find(id);
  return found == services_.end() ? nullptr : found->second;
}

void AgentCore::OnMessage(const WorkerInfo& from, Message message) {
  inbox_->Run([this, from, message = std::move(message)]() mutable {
    Dispatch(from, std::move(message));
  });
}

void AgentCore::OnPeerLost(const WorkerInfo& peer, absl::Status why) {
  inbox_->Post([this, peer, why] { OnLost(peer, why); });
}

void AgentCore::Dispatch(const WorkerInfo& from, Message message) {
  if (message.header.empty()) {
    Hear(from, {});
    return;
  }
  switch (static_cast<FrameKind>(message.header[0])) {
    case FrameKind::kRequest:
      OnRequest(from, std::move(message));
      return;
    case FrameKind::kResponse:
      OnResponse(from, std::move(message));
      return;
    case FrameKind::kControl:
      OnControlFrame(from, std::move(message));
      return;
    case FrameKind::kCancel: {
      auto frame = DecodeFrame<CancelFrame>(std::move(message.header));
      if (!Hear(from, {}).stale && frame.ok() &&
          frame->to == self().incarnation) {
        OnCancel(from, frame->call);
      }
      return;
    }
  }
  Drop(from, "message of an unknown kind", absl::OkStatus());
}

void AgentCore::Drop(const WorkerInfo& from, const char* what,
                     const absl::Status& why) {
  if (Hear(from, {}).stale) return;
  LogWarning("dropped a ", what, " of worker ", from.name, why.ok() ? "" : ": ",
             why.ok() ? "" : why.ToString());
}

void AgentCore::OnControlFrame(const WorkerInfo& from, Message message) {
  auto frame = DecodeFrame<ControlFrame>(std::move(message.header));
  if (!frame.ok()) {
    Drop(from, "control message", frame.status());
    return;
  }
  const bool meant = frame->to == 0 || frame->to == self().incarnation;
  const Peers::Observed heard =
      Hear(from, meant ? Peers::Said{.epoch = frame->epoch} : Peers::Said{});
  if (heard.stale || !meant) return;
  if (heard.spoken == Peers::Spoken::kEarlier) {
    FlushControl(from.name);
    return;
  }
  const ControlChannel::Received received = peers_.Receive(from, *frame);
  for (const auto& acked : received.acked) acked();
  for (const ControlItem& item : received.items) {
    if (item.kind == ControlKind::kLeaving) peers_.MarkLeaving(from);
    ownership_->OnControl(from, item);
  }
  FlushControl(from.name);
  Notify();
}

Peers::Observed AgentCore::Hear(const WorkerInfo& from,
                                const Peers::Said& said) {
  Peers::Observed heard = peers_.Observe(from, said);
  if (heard.replaced.has_value()) OnReplaced(*heard.replaced);
  if (heard.joined) Tell({.worker = from, .cause = {}});
  if (heard.spoken == Peers::Spoken::kLater) OnGivenUpBy(from);
  return heard;
}

// The other worker has already dropped the grants between the two from its
// tables, so this one drops them as well.
void AgentCore::OnGivenUpBy(const WorkerInfo& peer) {
  const absl::Status why = absl::UnavailableError(absl::StrCat(
      "worker ", peer.name, " has given up worker ", self().name,
      ", having lost or not heard it for too long; what they held of each "
      "other is lost"));
  LogWarning(why.message());
  Tell({MemberEvent::Kind::kLost, peer, why});
  EndAllWith(peer, why);
  Tell({.worker = peer, .cause = {}});
}

void AgentCore::OnLost(const WorkerInfo& peer, const absl::Status& cause) {
  const bool silent = absl::IsDeadlineExceeded(cause);
  const absl::Status why = absl::UnavailableError(cause.message());
  // An observer holds nothing and does not come back under the same name.
  if (peer.rank == kObserverRank) {
    auto removed = peers_.Remove(peer, why);
    if (removed) OnRemoved(*removed, {MemberEvent::Kind::kLeft, peer, why});
    return;
  }
  bool leaving = false;
  const uint64_t loss = peers_.MarkLost(peer, &leaving);
  if (loss == 0) {
    // The worker was given up before. Calls to it that were made since can only
    // fail now.
    FailCallsTo(peer, why);
    CancelCallsFrom(peer, why);
    if (!peers_.Knows(peer)) transport_->Forget(peer);
    return;
  }
  if (leaving || silent) {
    // Watchers are told by the code that no connection ended: it may be there.
    using Kind = MemberEvent::Kind;
    GiveUp({leaving ? Kind::kLeft : Kind::kLost, peer, cause}, loss);
    return;
  }
  Tell({MemberEvent::Kind::kBroken, peer, why});
  FailCallsTo(peer, why);
  CancelCallsFrom(peer, why);
  auto may_stay_away = SilenceWithin(options_.lease);
  {
    MutexLock lock(mutex_);
    if (shutdown_begun_) may_stay_away = lost_grace_;
  }
  // Each message that is sent tries to reconnect. This one is resent until it
  // is answered or the lease is over.
  peers_.Push(peer, {ControlKind::kPing, {}, {}}, nullptr);
  GiveUpAfter(may_stay_away, peer, loss, why);
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
                            const WorkerInfo& peer, uint64_t loss,
                            const absl::Status& why) {
  timer_.After(delay, [this, peer, loss, why] {
    inbox_->Post([this, peer, loss, why] {
      GiveUp({MemberEvent::Kind::kLost, peer, why}, loss);
    });
  });
}

void AgentCore::GiveUp(const MemberEvent& event, uint64_t loss) {
  const WorkerInfo& peer = event.worker;
  const absl::Status why = absl::UnavailableError(event.cause.message());
  if (!peers_.GiveUp(peer, loss, why)) return;
  LogInfo("gave up what worker ", peer.name, " held: ", event.cause.message());
  if (peers_.Knows(peer)) {
    OnGone(event);
  } else {
    OnRemoved({.info = peer}, event);
  }
}

void AgentCore::OnGone(const MemberEvent& event) {
  const WorkerInfo& peer = event.worker;
  EndAllWith(peer, absl::UnavailableError(absl::StrCat(
                       "worker ", peer.name,
                       " and what it had is lost: ", event.cause.message())));
  Tell(event);
}

void AgentCore::OnReplaced(const WorkerInfo& old) {
  OnGone({MemberEvent::Kind::kLost, old,
          absl::UnavailableError(
              absl::StrCat("worker ", old.name, " was started again"))});
}

void AgentCore::EndAllWith(const WorkerInfo& peer, const absl::Status& why) {
  FailCallsTo(peer, why);
  CancelCallsFrom(peer, why);
  ownership_->OnWorkerGone(peer, why);
  Notify();
}

bool AgentCore::SendControl(const WorkerInfo& to, ControlItem item,
                            std::function<void()> acked) {
  if (!peers_.Push(to, item, std::move(acked))) return false;
  PostFlush(to.name);
  return true;
}

void AgentCore::PostFlush(const std::string& name) {
  inbox_->Post([this, name] { FlushControl(name); });
}

void AgentCore::FlushControl(const std::string& name) {
  while (auto frame = peers_.Take(name, options_.resend_after)) {
    // Without a ticket the frame counts as lost and is sent again later.
    auto ticket = TakeReply(name);
    if (ticket == nullptr) return;
    transport_->Send(
        name, {EncodeFrame(FrameKind::kControl, *frame), {}},
        [core = weak_from_this(), name, ticket = std::move(ticket),
         news = peers_.News(name)](const absl::Status& status) {
          auto self = core.lock();
          // NotFound: the transport has removed the worker, and a late
          // message has made it known here again. The others: it must not
          // be dialed, or another process listens at its address.
          const bool unreachable = absl::IsUnavailable(status) ||
                                   absl::IsNotFound(status) ||
                                   absl::IsInvalidArgument(status) ||
                                   absl::IsUnauthenticated(status);
          if (self == nullptr || !unreachable) return;
          self->inbox_->Post([self = self.get(), name, news, status] {
            self->OnUnreachable(name, news, status);
          });
        });
  }
}

// If a worker that was never connected dies, no connection breaks; what waits
// for it must end all the same. If the worker was heard after the message was
// sent, it was connected, and the transport reports the end of that connection;
// this report is then outdated and ignored.
void AgentCore::OnUnreachable(const std::string& name, uint64_t news,
                              const absl::Status& why) {
  if (auto peer = peers_.ThereSince(name, news)) OnLost(*peer, why);
}

absl::Status AgentCore::CheckWorker(const WorkerInfo& worker) {
  return peers_.Find(worker).status();
}

void AgentCore::Discard(std::vector<std::shared_ptr<void>> garbage) {
  ++discarding_;
  workers_->Post([this, garbage = std::move(garbage)]() mutable {
    garbage.clear();
    --discarding_;
    Notify();
  });
}

void AgentCore::OnOwnershipChanged() { Notify(); }

void AgentCore::ScheduleTick() {
  timer_.After(options_.resend_after,
               [this] { inbox_->Post([this] { Tick(); }); });
}

void AgentCore::Tick() {
  if (stopped_) return;
  ownership_->Tick(Clock::now(), 10 * options_.resend_after);
  for (const std::string& name : peers_.WithControlDue(options_.resend_after)) {
    FlushControl(name);
  }
  ScheduleTick();
}

void AgentCore::Notify() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

}  // namespace baton::rpc::internal
