// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/hello.h"
#include "rpc/transports/link.h"
#include "rpc/wire.pb.h"

// Receiving through the stream and the ring.
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
    if (stream_.grpc.get() != &stream) return false;
    channels = channels_;
  }
  Receiver::Batch batch;
  absl::Status status = stream.receiver().Consume(frames, channels.get(), batch,
                                                  host_.options.device);
  // TensorChannels are called without the lock, because imports may take long.
  if (status.ok()) status = HearChannels(channels, batch);
  if (status.ok() && batch.Has(FrameKind::kGoodbye)) ReadRestOfRing();
  {
    MutexLock lock(mutex_);
    if (stream_.grpc.get() != &stream) return false;
    if (status.ok()) status = CheckBesideRingLocked(batch);
    if (status.ok()) status = HandleLocked(batch, false);
    if (!status.ok()) BadFramesLocked(status);
  }
  Deliver();
  // The messages that paused the stream may have been delivered by now.
  return deliveries_->has_room();
}

void Link::ResumeReading() {
  MutexLock lock(mutex_);
  if (deliveries_->has_room()) {
    if (stream_.grpc != nullptr) stream_.grpc->ResumeReading();
    if (ring_in_ != nullptr) {
      ring_in_->set_paused(false);
      host_.poller->Wake();
    }
  }
  PauseLargeLocked();
}

void Link::PauseLargeLocked() {
  const bool pauses = !held_->has_room();
  if (state_ != State::kUp || pauses == stream_.pauses) return;
  stream_.pauses = pauses;
  PumpLocked();
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

// Once the peer writes a ring, small messages and what channels say are in it.
absl::Status Link::CheckBesideRingLocked(const Receiver::Batch& batch) const {
  if (ring_in_ == nullptr) return absl::OkStatus();
  if (batch.Has(FrameKind::kChannel) || batch.Has(FrameKind::kRing))
    return absl::InvalidArgumentError("a frame beside the ring");
  if (batch.small)
    return absl::InvalidArgumentError("a message beside the ring");
  return absl::OkStatus();
}

absl::Status Link::HandleLocked(Receiver::Batch& batch, bool from_ring) {
  bool goodbye = false;
  bool ring = false;
  failure_detector_.Heard();
  const auto stream = stream_.grpc;
  for (const Receiver::Control& control : batch.controls) {
    // An answer may have ended this stream, to which the others belong.
    if (stream_.grpc != stream) return absl::OkStatus();
    if (control.kind == FrameKind::kHelloAnswer && !stream_.ready) {
      ASSIGN_OR_RETURN(const wire::HelloAnswer answer,
                       ParseHelloAnswer(control.meta));
      RETURN_IF_ERROR(OnAnswerLocked(answer));
    } else if (control.kind == FrameKind::kChallenge && !stream_.ready) {
      ASSIGN_OR_RETURN(const wire::Challenge challenge,
                       ParseChallenge(control.meta));
      RETURN_IF_ERROR(OnChallengeLocked(challenge));
    } else if (control.kind == FrameKind::kGoodbye && stream_.ready &&
               !from_ring && !stream_.goodbye_received) {
      goodbye = true;
    } else if (control.kind == FrameKind::kRing && stream_.ready &&
               !from_ring) {
      ring = true;
    } else if (stream_.ready && (control.kind == FrameKind::kPause ||
                                 control.kind == FrameKind::kResume)) {
      stream_.peer_pauses = control.kind == FrameKind::kPause;
    } else if (stream_.ready && (control.kind == FrameKind::kBeat ||
                                 control.kind == FrameKind::kChannel)) {
      continue;
    } else {
      return absl::InvalidArgumentError("a hello at the wrong time");
    }
  }
  if (batch.has_messages() && !stream_.ready) {
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
  if (goodbye) GoodbyeReceivedLocked();
  // The last steps, because the link may break.
  if (!batch.late.empty()) PauseLargeLocked();
  if (batch.Has(FrameKind::kResume)) PumpLocked();
  return absl::OkStatus();
}

void Link::GoodbyeReceivedLocked() {
  stream_.goodbye_received = true;
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
    if (status.ok()) status = HandleLocked(batch, true);
    if (!status.ok()) BadFramesLocked(status);
    ring.set_paused(!deliveries_->has_room());
  }
  Deliver();
  // The messages that paused it may have been delivered by now.
  if (deliveries_->has_room()) ring.set_paused(false);
}

// What the peer wrote before it ended counts, even if reading is paused.
void Link::ReadRestOfRing() {
  std::shared_ptr<RingReceiver> ring;
  {
    MutexLock lock(mutex_);
    ring = ring_in_;
  }
  // Once for the bytes that had no room, and once for those in the ring.
  for (int i = 0; ring != nullptr && i < 2; ++i) ReadRing(*ring, SIZE_MAX);
}

}  // namespace baton::rpc
