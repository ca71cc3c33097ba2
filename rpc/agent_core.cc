// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/agent_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/shown_time.h"
#include "rpc/introspection.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

// Deadlines that are closer together than this may be met together, so that
// many of them cost few wake-ups.
constexpr milliseconds kLeastBetween{1};

absl::Status TooLate(const OutgoingCall& call) {
  const auto allowed =
      std::chrono::duration_cast<milliseconds>(call.deadline - call.started);
  return absl::DeadlineExceededError(
      absl::StrCat("no answer within ", ShownTime(allowed)));
}

// Returns whether the call is late now, and if so, adds it to `late`, once.
template <typename Call>
bool IsLate(const Call& call, AgentCore::Clock::time_point now,
            std::vector<Call>& late) {
  if (call->deadline > now) return false;
  if (!std::exchange(call->late, true)) late.push_back(call);
  return true;
}

uint64_t MicrosSince(AgentCore::Clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          AgentCore::Clock::now() - begin)
          .count());
}

// Fetch and Ready count as one method each for all types.
const std::string& StatsName(const MethodKey& method, const std::string& name) {
  static const std::string fetch = "RRef::Fetch", ready = "RRef::Ready";
  if (method.type != kSystemMethods) return name;
  return method.index == kFetch ? fetch : ready;
}

}  // namespace

AgentCore::AgentCore(AgentOptions options, Registry registry,
                     std::unique_ptr<Transport> transport)
    : options_(std::move(options)),
      registry_(std::move(registry)),
      transport_(std::move(transport)),
      default_timeout_ms_(options_.default_timeout.count()),
      inbox_(std::make_shared<Inbox>("baton-inbox")),
      completions_(std::make_shared<StoppablePool>(2, "baton-complete")),
      workers_(std::make_shared<StoppablePool>(options_.worker_threads,
                                               "baton-work")),
      peers_(options_.self, {.calls = options_.max_calls_per_peer,
                             .bytes = options_.max_call_bytes_per_peer,
                             .replies = options_.max_replies_per_peer}) {}

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
      const Peers::Observed heard = Hear(from, {});
      const bool meant =
          frame.ok() && (frame->to == 0 || frame->to == self().incarnation);
      if (!heard.stale() && meant) OnCancel(*heard.peer, frame->call);
      return;
    }
  }
  Drop(from, "message of an unknown kind", absl::OkStatus());
}

void AgentCore::Drop(const WorkerInfo& from, const char* what,
                     const absl::Status& why) {
  if (Hear(from, {}).stale()) return;
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
  if (heard.stale() || !meant) return;
  if (heard.spoken == Peers::Spoken::kEarlier) {
    FlushControl(heard.peer);
    return;
  }
  ControlChannel::Received received;
  {
    MutexLock lock(mutex_);
    received = peers_.Receive(*heard.peer, *frame);
    for (const ControlItem& item : received.items) {
      if (item.kind == ControlKind::kLeaving) peers_.MarkLeaving(*heard.peer);
    }
  }
  for (const auto& acked : received.acked) acked();
  for (const ControlItem& item : received.items)
    ownership_->OnControl(from, item);
  FlushControl(heard.peer);
  Notify();
}

Peers::Observed AgentCore::Hear(const WorkerInfo& from,
                                const Peers::Said& said) {
  Peers::Observed heard = WithPeers(&Peers::Observe, from, said);
  if (heard.replaced != nullptr) OnReplaced(heard.replaced);
  if (heard.joined) Tell({.worker = from, .cause = {}});
  if (heard.spoken == Peers::Spoken::kLater) OnGivenUpBy(heard.peer);
  return heard;
}

bool AgentCore::SendControl(const WorkerInfo& to, ControlItem item,
                            std::function<void()> acked) {
  PeerPtr peer;
  {
    MutexLock lock(mutex_);
    peer = peers_.Current(to);
    if (peer == nullptr || !peers_.Push(*peer, item, std::move(acked)))
      return false;
  }
  inbox_->Post([this, peer] { FlushControl(peer); });
  return true;
}

void AgentCore::FlushControl(const PeerPtr& peer) {
  for (;;) {
    std::optional<ControlFrame> frame;
    uint64_t news = 0;
    {
      MutexLock lock(mutex_);
      frame = peers_.Take(*peer, options_.resend_after);
      news = peers_.News(*peer);
    }
    if (!frame.has_value()) return;
    // Without a ticket the frame counts as lost and is sent again later.
    auto ticket = TakeReply(*peer);
    if (ticket == nullptr) return;
    transport_->Send(
        peer->name, {EncodeFrame(FrameKind::kControl, *frame), {}},
        [core = weak_from_this(), peer, ticket = std::move(ticket),
         news](const absl::Status& status) {
          auto self = core.lock();
          // NotFound: the transport has removed the worker, and a late
          // message has made it known here again. The others: it must not
          // be dialed, or another process listens at its address.
          const bool unreachable = absl::IsUnavailable(status) ||
                                   absl::IsNotFound(status) ||
                                   absl::IsInvalidArgument(status) ||
                                   absl::IsUnauthenticated(status);
          if (self == nullptr || !unreachable) return;
          self->inbox_->Post([self = self.get(), peer, news, status] {
            self->OnUnreachable(*peer, news, status);
          });
        });
  }
}

// If a worker that was never connected dies, no connection breaks; what waits
// for it must end all the same. If the worker was heard after the message was
// sent, it was connected, and the transport reports the end of that connection;
// this report is then outdated and ignored.
void AgentCore::OnUnreachable(const Peer& peer, uint64_t news,
                              const absl::Status& why) {
  WorkerInfo info;
  {
    MutexLock lock(mutex_);
    if (!peers_.IsThereSince(peer, news)) return;
    info = peers_.InfoOf(peer);
  }
  OnLost(info, why);
}

absl::Status AgentCore::CheckWorker(const WorkerInfo& worker) {
  return WithPeers(&Peers::Find, worker).status();
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
  const auto due = WithPeers(&Peers::WithControlDue, options_.resend_after);
  for (const PeerPtr& peer : due) FlushControl(peer);
  ScheduleTick();
}

void AgentCore::Notify() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

// How calls that were made and calls that are served end at their deadlines.

void AgentCore::AwaitDeadlineLocked(Clock::time_point deadline) {
  if (deadline >= awaited_) return;
  timer_.Cancel(alarm_);
  awaited_ = deadline;
  alarm_ = timer_.At(deadline, [this] { EndLateCalls(); });
}

void AgentCore::EndLateCalls() {
  std::vector<CallPtr> made;
  std::vector<IncomingPtr> served;
  {
    MutexLock lock(mutex_);
    const auto now = Clock::now();
    auto next = Clock::time_point::max();
    for (const auto& [due, call] : outgoing_) {
      if (IsLate(call, now, made)) continue;
      next = call->deadline;
      break;
    }
    for (const auto& [due, call] : incoming_) {
      if (IsLate(call, now, served)) continue;
      next = std::min(next, call->deadline);
      break;
    }
    awaited_ = Clock::time_point::max();
    if (next != Clock::time_point::max()) {
      AwaitDeadlineLocked(
          std::max<Clock::time_point>(next, now + kLeastBetween));
    }
  }
  for (const CallPtr& call : made) FailLater(call, TooLate(*call), false);
  for (const IncomingPtr& call : served) {
    completions_->Post([call] {
      call->context->cancel.Cancel(
          absl::DeadlineExceededError("the call's deadline has passed"));
    });
  }
}

// Statistics and traces of calls that have ended.

void AgentCore::RecordMade(const CallPtr& call, bool ok) {
  Record(*call->peer,
         {.method = call->spec.method,
          .method_name = StatsName(call->spec.method, call->spec.name),
          .ok = ok,
          .micros = MicrosSince(call->started),
          .bytes_sent = call->bytes_sent,
          .bytes_received = call->bytes_received},
         call->spec.name, call->number, call->started, call->sent_ns);
}

void AgentCore::RecordServed(const IncomingPtr& call, bool ok,
                             uint64_t bytes_sent) {
  const bool served =
      call->started != Clock::time_point() && !call->name.empty();
  // Calls of observers are not recorded.
  if (!served || call->from.rank == kObserverRank) return;
  const MethodKey method{call->frame.type, call->frame.index};
  Record(*call->peer,
         {.incoming = true,
          .method = method,
          .method_name = StatsName(method, call->name),
          .ok = ok,
          .micros = MicrosSince(call->started),
          .bytes_sent = bytes_sent,
          .bytes_received = call->bytes_received},
         call->name, call->frame.call, call->started, call->running_ns);
}

void AgentCore::Record(const Peer& peer, const EndedCall& ended,
                       const std::string& name, uint64_t number,
                       Clock::time_point started, int64_t mid_ns) {
  WithPeers(&Peers::Count, peer, ended);
  if (!tracer_->on()) return;
  uint64_t request = ended.bytes_sent, answer = ended.bytes_received;
  if (ended.incoming) std::swap(request, answer);
  const int64_t begin = Tracer::Nanos(started);
  tracer_->Add({.kind = ended.incoming ? TraceEvent::Kind::kServe
                                       : TraceEvent::Kind::kCall,
                .ok = ended.ok,
                .name = name,
                .peer = peer.name,
                .number = number,
                .begin_ns = begin,
                .mid_ns = mid_ns == 0 ? begin : mid_ns,
                .end_ns = Tracer::Now(),
                .request_bytes = request,
                .answer_bytes = answer});
}

}  // namespace baton::rpc::internal
