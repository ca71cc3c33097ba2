// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/link.h"

// Receiving through the streams and the ring.
namespace baton::rpc {

absl::Status Link::HearChannels(const std::shared_ptr<TensorChannels>& channels,
                                const Receiver::Batch& batch) {
  for (const Receiver::Control& control : batch.controls) {
    if (control.kind != FrameKind::kChannel) continue;
    if (channels == nullptr) {
      return absl::InvalidArgumentError("a channel frame too early");
    }
    RETURN_IF_ERROR(channels->OnFrame(control.meta));
  }
  return absl::OkStatus();
}

bool Link::OnFrames(GrpcStream& stream, const grpc::ByteBuffer& frames) {
  std::shared_ptr<TensorChannels> channels;
  {
    MutexLock lock(mutex_);
    if (Find(stream) == nullptr) return false;
    channels = channels_;
  }
  Receiver::Batch batch;
  absl::Status status = stream.receiver().Consume(frames, channels.get(), batch,
                                                  host_.options.device);
  // TensorChannels are called without the lock, because imports may take long.
  if (status.ok()) status = HearChannels(channels, batch);
  bool more = false, control = false;
  {
    MutexLock lock(mutex_);
    StreamState* state = Find(stream);
    if (state == nullptr) return false;
    control = state == &control_;
    if (status.ok()) status = HandleStreamLocked(*state, batch);
    if (!status.ok()) BadFramesLocked(status);
    more = Find(stream) != nullptr && HasRoom(control);
  }
  Deliver();
  // The messages that paused the stream may have been delivered by now.
  return more || HasRoom(control);
}

bool Link::HasRoom(bool control) const {
  return deliveries_->has_room() && (control || held_->has_room());
}

void Link::ResumeReading() {
  MutexLock lock(mutex_);
  for (StreamState* state : {&control_, &bulk_}) {
    if (state->stream != nullptr && HasRoom(state == &control_))
      state->stream->ResumeReading();
  }
  if (ring_in_ != nullptr && HasRoom(true)) {
    ring_in_->set_paused(false);
    host_.poller->Wake();
  }
}

void Link::Deliver() {
  if (host_.options.inline_delivery) {
    deliveries_->RunHere();
  } else {
    deliveries_->Post();
  }
}

void Link::BadFramesLocked(const absl::Status& why) {
  // The sender is told that the tokens differ; this end needs no warning.
  if (state_ != State::kUp && absl::IsUnauthenticated(why)) {
    AttemptFailedLocked(why);
    return;
  }
  const absl::Status garbage = absl::UnavailableError(
      absl::StrCat("it sent what makes no sense: ", why.message()));
  LogWarning("worker ", peer_.name, ": ", garbage.message());
  if (state_ == State::kUp) {
    BreakLocked(LostLocked(garbage), true);
  } else {
    AttemptFailedLocked(garbage);
  }
}

// Once the peer writes a ring, its control stream may only carry beats.
absl::Status Link::HandleStreamLocked(StreamState& state,
                                      Receiver::Batch& batch) {
  if (&state == &control_ && ring_in_ != nullptr) {
    for (const Receiver::Control& control : batch.controls) {
      if (control.kind == FrameKind::kBeat) continue;
      return absl::InvalidArgumentError("a frame beside the ring");
    }
    if (batch.has_messages()) {
      return absl::InvalidArgumentError("a message beside the ring");
    }
  }
  return HandleLocked(state, batch, &state == &control_);
}

absl::Status Link::HandleLocked(StreamState& state, Receiver::Batch& batch,
                                bool may_open_ring) {
  bool goodbye = false;
  bool ring = false;
  failure_detector_.Heard();
  for (const Receiver::Control& control : batch.controls) {
    if (control.kind == FrameKind::kHelloAnswer && !state.ready) {
      ASSIGN_OR_RETURN(HelloAnswer answer, ParseHelloAnswer(control.meta));
      RETURN_IF_ERROR(OnAnswerLocked(state, answer));
    } else if (control.kind == FrameKind::kChallenge && !state.ready) {
      ASSIGN_OR_RETURN(Challenge challenge, ParseChallenge(control.meta));
      RETURN_IF_ERROR(OnChallengeLocked(state, challenge));
    } else if (control.kind == FrameKind::kGoodbye && state.ready &&
               !state.goodbye_received) {
      goodbye = true;
    } else if (control.kind == FrameKind::kRing && state.ready &&
               may_open_ring) {
      ring = true;
    } else if (state.ready && (control.kind == FrameKind::kBeat ||
                               control.kind == FrameKind::kChannel)) {
      continue;
    } else {
      return absl::InvalidArgumentError("a hello at the wrong time");
    }
  }
  if (batch.has_messages() && !state.ready) {
    return absl::InvalidArgumentError("a message before the hello");
  }
  traffic_.messages_received += batch.messages.size();
  traffic_.bytes_received += batch.bytes;
  for (Message& message : batch.messages) {
    deliveries_->Push(peer_, std::move(message),
                      batch.bytes / batch.messages.size());
  }
  traffic_.messages_received += batch.late.size();
  for (PendingMessage& late : batch.late) {
    traffic_.bytes_received += late.bytes;
    RETURN_IF_ERROR(held_->Hold(peer_, std::move(late)));
  }
  if (ring) RETURN_IF_ERROR(OpenRingLocked());
  if (goodbye) GoodbyeReceivedLocked(state);
  return absl::OkStatus();
}

void Link::GoodbyeReceivedLocked(StreamState& state) {
  state.goodbye_received = true;
  if (!control_.goodbye_received || (!bulk_.goodbye_received && bulk_.ready))
    return;
  // Tensors of earlier messages may still arrive.
  const bool later =
      held_->WhenNone([weak = weak_from_this(), times_up = times_up_] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        MutexLock lock(self->mutex_);
        if (self->state_ == State::kUp && self->times_up_ == times_up)
          self->PeerHasShutDownLocked();
      });
  if (!later) PeerHasShutDownLocked();
}

void Link::PeerHasShutDownLocked() {
  BreakLocked(LostLocked(absl::UnavailableError("it has shut down")), true);
}

absl::Status Link::OpenRingLocked() {
  auto end = channels_ == nullptr ? std::nullopt : channels_->TakeRingIn();
  if (!end.has_value()) {
    return absl::InvalidArgumentError("a ring that is not there");
  }
  ring_in_ = std::make_shared<RingReceiver>(
      *std::move(end), channels_, host_.options.max_message_bytes,
      [weak = weak_from_this()](RingReceiver& ring) {
        if (const auto self = weak.lock()) self->ReadRing(ring, kChunkBytes);
      });
  host_.poller->Add(ring_in_);
  return absl::OkStatus();
}

void Link::ReadRing(RingReceiver& ring, size_t most) {
  {
    MutexLock one(ring.reading());
    Receiver::Batch batch;
    absl::Status status = ring.Read(host_.options.device, most, batch);
    if (status.ok()) status = HearChannels(ring.channels(), batch);
    MutexLock lock(mutex_);
    if (ring_in_.get() != &ring) return;
    if (status.ok()) status = HandleLocked(control_, batch, false);
    if (!status.ok()) BadFramesLocked(status);
    ring.set_paused(!deliveries_->has_room());
  }
  Deliver();
  // The messages that paused it may have been delivered by now.
  if (deliveries_->has_room()) ring.set_paused(false);
}

// Bytes that the peer wrote before it ended count like those on a stream.
void Link::ReadRestOfRing() {
  std::shared_ptr<RingReceiver> ring;
  {
    MutexLock lock(mutex_);
    ring = ring_in_;
  }
  // Once for the bytes that had no room, and once for those in the ring.
  for (int i = 0; ring != nullptr && ring->Ready() && i < 2; ++i) {
    ReadRing(*ring, SIZE_MAX);
  }
}

}  // namespace baton::rpc
