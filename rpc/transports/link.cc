// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "rpc/transports/framing.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// Waiting small messages are written together, up to this size.
constexpr size_t kControlWriteBytes = size_t{64} << 10;

}  // namespace

std::shared_ptr<Link> Link::Make(LinkHost& host, const WorkerInfo& peer,
                                 Incarnations past) {
  std::shared_ptr<Link> link(new Link(host, peer, std::move(past)));
  const auto resume = [weak = std::weak_ptr<Link>(link)] {
    if (auto self = weak.lock()) self->ResumeReading();
  };
  link->deliveries_ = std::make_shared<Deliveries>(
      host.gate, host.executor, host.options.max_undelivered_bytes, resume);
  link->held_ = std::make_shared<PendingMessages>(
      link->deliveries_, host.options.max_undelivered_bytes,
      host.options.max_message_bytes, resume,
      [weak = std::weak_ptr<Link>(link)](const absl::Status& why) {
        if (auto self = weak.lock()) self->BreakForTensor(why);
      });
  return link;
}

void Link::BreakForTensor(const absl::Status& why) {
  MutexLock lock(mutex_);
  if (state_ != State::kUp) return;
  BreakLocked(LostLocked(absl::UnavailableError(
                  absl::StrCat("a tensor did not come: ", why.message()))),
              true);
}

bool Link::idle() const {
  MutexLock lock(mutex_);
  return state_ == State::kIdle;
}

ChannelInfo Link::channel() const {
  MutexLock lock(mutex_);
  ChannelInfo channel = traffic_;
  channel.peer = peer_.name;
  channel.name = "grpc";
  channel.up = state_ == State::kUp;
  if (ring_out_ != nullptr) {
    absl::StrAppend(&channel.detail, ", small messages by shared memory");
  }
  return channel;
}

void Link::Send(std::shared_ptr<Outgoing> message) {
  MutexLock lock(mutex_);
  // A sender may still have a link that was closed meanwhile; a connection
  // dialed here would outlive it.
  if (!closed_.ok()) {
    message->Fail(closed_);
    return;
  }
  if (saying_goodbye_ || host_.stopping) {
    message->Fail(absl::UnavailableError("the transport is shut down"));
    return;
  }
  if (message->channels() != nullptr && message->channels() != channels_) {
    // After the OnPeerLost of the connection whose channels took its tensors.
    deliveries_->PushTask(
        [message = std::move(message),
         broken = LostLocked(absl::UnavailableError("it broke meanwhile"))] {
          message->Fail(broken);
        });
    deliveries_->Post();
    return;
  }
  StreamState& state = message->bulk() ? bulk_ : control_;
  state.queue.push_back(std::move(message));
  if (state_ == State::kIdle) {
    StartDialLocked();
  } else {
    PumpLocked(state);
  }
}

size_t Link::StreamState::UnderWay() const {
  size_t bytes = 0;
  for (const auto& message : in_flight) bytes += message->bytes();
  if (!queue.empty() && queue.front()->begun()) bytes += queue.front()->bytes();
  return bytes;
}

Link::StreamState* Link::Find(const GrpcStream& stream) {
  if (control_.stream.get() == &stream) return &control_;
  if (bulk_.stream.get() == &stream) return &bulk_;
  return nullptr;
}

std::shared_ptr<TensorChannels> Link::channels() const {
  MutexLock lock(mutex_);
  return channels_;
}

void Link::OnWritten(GrpcStream& stream) {
  MutexLock lock(mutex_);
  StreamState* state = Find(stream);
  if (state == nullptr) return;
  state->writing = false;
  for (const auto& message : state->in_flight) HasLeftLocked(message);
  state->in_flight.clear();
  PumpLocked(*state);
}

void Link::HasLeftLocked(const std::shared_ptr<Outgoing>& message) {
  ++traffic_.messages_sent;
  traffic_.bytes_sent += message->bytes();
  message->Written();
  std::erase_if(leaving_, [](const auto& each) { return each.expired(); });
  if (message->awaits_channels()) leaving_.push_back(message);
}

// Refuses what the peer would break the connection for.
bool Link::RefuseTooLargeLocked(StreamState& state) {
  const Outgoing& message = *state.queue.front();
  if (peer_max_bytes_ == 0 || message.bytes() <= peer_max_bytes_) return false;
  state.queue.front()->Fail(absl::ResourceExhaustedError(absl::StrCat(
      "a message of ", message.bytes(), " bytes; worker ", peer_.name,
      " takes at most ", peer_max_bytes_, " (its --max_message_bytes)")));
  state.queue.pop_front();
  return true;
}

void Link::PumpLocked(StreamState& state) {
  if (&state == &control_) {
    TakeUpRingLocked();
    if (ring_out_ != nullptr) {
      PumpRingLocked();
      return;
    }
  }
  if (state.writing) return;
  if (!state.proof.empty()) {
    state.writing = true;
    state.stream->Write(EncodeProof(std::exchange(state.proof, {})));
    return;
  }
  if (!state.ready) return;
  std::vector<grpc::Slice> slices;
  size_t budget = &state == &bulk_ ? kChunkBytes : kControlWriteBytes;
  if (&state == &control_ && channels_ != nullptr) {
    const std::string said = channels_->TakeFrame();
    if (!said.empty()) slices.push_back(MetaSlice(FrameKind::kChannel, said));
  }
  while (!state.queue.empty() && budget > 0) {
    if (RefuseTooLargeLocked(state)) continue;
    if (!Outgoing::Take(state.queue.front(), budget, slices)) break;
    state.in_flight.push_back(std::move(state.queue.front()));
    state.queue.pop_front();
  }
  if (slices.empty()) {
    PumpGoodbyeLocked();
    return;
  }
  state.writing = true;
  if (&state == &control_) failure_detector_.Spoke();
  state.stream->Write(grpc::ByteBuffer(slices.data(), slices.size()));
}

void Link::PumpChannels() {
  MutexLock lock(mutex_);
  if (channels_ != nullptr) {
    const std::string broken = channels_->broken();
    if (!broken.empty())
      return BreakLocked(LostLocked(absl::UnavailableError(broken)), true);
  }
  PumpLocked(control_);
}

void Link::BecomeUpLocked(milliseconds lease, uint64_t max_bytes) {
  peer_max_bytes_ = max_bytes;
  state_ = State::kUp;
  was_up_ = true;
  failure_detector_ = FailureDetector(host_.options.lease, lease, Clock::now());
  failure_detector_.Heard();  // its hello
  ++times_up_;
  if (failure_detector_.interval().count() > 0) AwaitBeatLocked();
}

void Link::AwaitBeatLocked() {
  // All links beat at one time, which needs one wake-up, but not at the time
  // of other processes of the machine.
  host_.timer->At(
      failure_detector_.Next(Clock::now(), host_.self.incarnation),
      [weak = weak_from_this(), times_up = times_up_] {
        auto self = weak.lock();
        if (self == nullptr) return;
        MutexLock lock(self->mutex_);
        if (self->state_ == State::kUp && self->times_up_ == times_up) {
          self->BeatLocked();
        }
      });
}

void Link::BeatLocked() {
  // The peer's messages are not read while too many of them wait here.
  if (!deliveries_->has_room()) failure_detector_.Heard();
  if (channels_ != nullptr) {
    const Channel::Signs signs = channels_->Beat();
    if (signs.alive) failure_detector_.Heard();
    if (signs.seen) failure_detector_.Spoke();
  }
  if (ring_in_ != nullptr) host_.poller->Check(*ring_in_);
  if (ring_out_ != nullptr) host_.poller->Check(*ring_out_);
  const FailureDetector::Due due = failure_detector_.Beat(Clock::now());
  if (due.silent) {
    const absl::Status silent = absl::DeadlineExceededError(
        absl::StrCat("worker ", peer_.name, " is silent for its lease of ",
                     ShownTime(host_.options.lease)));
    LogWarning(silent.message());
    BreakLocked(silent, true);
    return;
  }
  // A write under way serves as a beat: either more will arrive or the peer
  // reads nothing. Beats continue after a goodbye, since the peer may still
  // wait for tensors of earlier messages.
  if (due.speak && control_.ready && !control_.writing) {
    control_.writing = true;
    control_.stream->Write(MetaFrame(FrameKind::kBeat, ""));
  }
  AwaitBeatLocked();
}

absl::Status Link::LostLocked(const absl::Status& why) const {
  return absl::UnavailableError(absl::StrCat("lost the connection to worker ",
                                             peer_.name, ": ", why.message()));
}

// Only once both streams are empty, because the peer then closes the link.
void Link::PumpGoodbyeLocked() {
  if (!saying_goodbye_ || state_ != State::kUp) return;
  for (StreamState* state : {&control_, &bulk_}) {
    if (state->writing || !state->queue.empty()) return;
  }
  if (in_ring_ != nullptr) return;
  for (StreamState* state : {&control_, &bulk_}) {
    if (!state->ready || std::exchange(state->goodbye_sent, true)) continue;
    if (state == &control_ && ring_out_ != nullptr) {
      AddToRingLocked(MetaBytes(FrameKind::kGoodbye, ""));
      continue;
    }
    state->writing = true;
    state->stream->Write(MetaFrame(FrameKind::kGoodbye, ""));
  }
}

void Link::BeginGoodbye() {
  MutexLock lock(mutex_);
  saying_goodbye_ = true;
  // Nobody is there to receive it, and a peer that broke off is not awaited.
  if (state_ == State::kDialing && (resting_ || was_up_)) {
    DialFailedLocked(UnreachableLocked());
  } else {
    PumpGoodbyeLocked();
  }
}

void Link::OnBroken(GrpcStream& stream, const absl::Status& why) {
  ReadRestOfRing();
  MutexLock lock(mutex_);
  if (Find(stream) == nullptr) return;
  if (state_ == State::kUp) {
    BreakLocked(LostLocked(why), true);
  } else {
    AttemptFailedLocked(why);
  }
}

void Link::Sever(const absl::Status& why, Task then) {
  MutexLock lock(mutex_);
  BreakLocked(why, true);
  if (then == nullptr) return;
  deliveries_->PushTask(
      [then = std::move(then), executor = host_.executor]() mutable {
        executor->Post(std::move(then));
      });
  deliveries_->Post();
}

void Link::Close(const absl::Status& why) {
  MutexLock lock(mutex_);
  closed_ = why;
  BreakLocked(why, false);
}

std::optional<Link::Incarnations> Link::CloseUnlessUp(uint64_t incarnation,
                                                      const absl::Status& why) {
  MutexLock lock(mutex_);
  if (state_ == State::kUp) return std::nullopt;
  if (peer_.incarnation != 0 && peer_.incarnation != incarnation) {
    return std::nullopt;
  }
  closed_ = why;
  BreakLocked(why, false);
  if (peer_.incarnation != 0) RememberIncarnationLocked();
  return past_;
}

void Link::BreakLocked(const absl::Status& why, bool tell) {
  for (StreamState* state : {&control_, &bulk_}) {
    if (state->stream == nullptr) continue;
    if (state->writing) state->stream->Owes(peer_.name, state->UnderWay());
    state->stream->Close();
  }
  DropRingsLocked();
  // Kept until their failure may be reported.
  std::vector<std::shared_ptr<Outgoing>> leaving;
  for (const auto& each : std::exchange(leaving_, {})) {
    if (auto message = each.lock()) leaving.push_back(std::move(message));
  }
  // First, so that messages that wait for tensors do not fail the connection.
  held_->Drop();
  if (channels_ != nullptr) channels_->Close();
  std::erase_if(leaving, [](const auto& each) { return !each->lost(); });
  channels_ = nullptr;
  const absl::Status failure = absl::IsDeadlineExceeded(why)
                                   ? absl::UnavailableError(why.message())
                                   : why;
  if (state_ == State::kUp && tell && !host_.stopping) {
    deliveries_->PushLost(peer_, why);
    deliveries_->PushTask(
        [messages = TakeQueuesLocked(), leaving = std::move(leaving), failure] {
          for (const auto& message : messages) message->Fail(failure);
          for (const auto& message : leaving) message->Fail(failure);
        });
    deliveries_->Post();
  } else {
    for (const auto& message : leaving) message->Fail(failure);
    FailQueuesLocked(failure);
  }
  BecomeIdleLocked();
}

std::vector<std::shared_ptr<Outgoing>> Link::TakeQueuesLocked() {
  std::vector<std::shared_ptr<Outgoing>> messages;
  if (in_ring_ != nullptr) messages.push_back(std::exchange(in_ring_, nullptr));
  for (StreamState* state : {&control_, &bulk_}) {
    for (auto& message : state->in_flight) messages.push_back(message);
    for (auto& message : state->queue) messages.push_back(message);
    *state = StreamState();
  }
  return messages;
}

void Link::FailQueuesLocked(const absl::Status& why) {
  for (const auto& message : TakeQueuesLocked()) message->Fail(why);
}

void Link::BecomeIdleLocked() {
  state_ = State::kIdle;
  resting_ = false;
  MutexLock lock(host_.idle_mutex);
  ++host_.idle_events;
  host_.idle.NotifyAll();
}

void AwaitIdle(LinkHost& host, const std::vector<std::shared_ptr<Link>>& links,
               milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    uint64_t seen;
    {
      MutexLock lock(host.idle_mutex);
      seen = host.idle_events;
    }
    if (std::all_of(links.begin(), links.end(),
                    [](const auto& link) { return link->idle(); })) {
      return;
    }
    MutexLock lock(host.idle_mutex);
    while (host.idle_events == seen) {
      if (!host.idle.WaitUntil(host.idle_mutex, deadline)) return;
    }
  }
}

}  // namespace baton::rpc
