// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "core/log.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/link.h"

// Sending through the ring.
namespace baton::rpc {

void Link::TakeUpRingLocked() {
  if (ring_out_ != nullptr || channels_ == nullptr || !stream_.ready ||
      stream_.writing || stream_.goodbye_sent) {
    return;
  }
  auto end = channels_->TakeRingOut();
  if (!end.has_value()) return;
  ring_out_ =
      std::make_shared<RingSender>(*std::move(end), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->PumpChannels();
      });
  WriteLocked(MetaFrame(FrameKind::kRing, ""));
  LogInfo("worker ", host_.self.name, " -> worker ", peer_.name,
          ": small messages by shared memory");
}

bool Link::AddToRingLocked(std::string_view frame) {
  absl::Status status = ring_out_->Add(frame);
  bool out = false;
  if (status.ok()) {
    const auto flushed = ring_out_->Flush();
    status = flushed.status();
    out = flushed.ok() && *flushed;
  }
  if (status.ok()) {
    ring_out_->Publish();
    failure_detector_.Spoke();
    if (!out) host_.poller->Add(ring_out_);  // now the poller watches it
  } else {
    BadFramesLocked(status);
  }
  return out;
}

bool Link::FlushRingLocked() {
  const auto flushed = ring_out_->Flush();
  if (!flushed.ok()) {
    BadFramesLocked(flushed.status());
    return false;
  }
  ring_out_->Publish();
  if (!*flushed) {
    host_.poller->Add(ring_out_);
    return false;
  }
  if (in_ring_ != nullptr) HasLeftLocked(std::exchange(in_ring_, nullptr));
  return true;
}

void Link::PumpRingLocked() {
  if (!FlushRingLocked()) return;
  const std::string said = channels_->TakeFrame();
  if (!said.empty() && !AddToRingLocked(MetaBytes(FrameKind::kChannel, said)))
    return;
  while (!stream_.small.empty()) {
    in_ring_ = std::move(stream_.small.front());
    stream_.small.pop_front();
    const std::shared_ptr<Outgoing> message = in_ring_;
    if (!AddToRingLocked(Outgoing::TakeFrame(message))) return;
    in_ring_ = nullptr;
    HasLeftLocked(message);
  }
}

void Link::DropRingsLocked() {
  if (ring_in_ != nullptr) host_.poller->Remove(ring_in_.get());
  if (ring_out_ != nullptr) host_.poller->Remove(ring_out_.get());
  ring_in_ = nullptr;
  ring_out_ = nullptr;
}

}  // namespace baton::rpc
