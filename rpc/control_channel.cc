// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/control_channel.h"

#include <algorithm>
#include <utility>

namespace baton::rpc::internal {
namespace {
constexpr uint64_t kItemsPerFrame = 256;
}  // namespace

void ControlChannel::Push(ControlItem item, Acked acked) {
  items_.push_back({item, std::move(acked)});
}

bool ControlChannel::Due(Clock::time_point now,
                         std::chrono::milliseconds resend_after) const {
  if (owes_ack_ || unsent_ < first_ + items_.size()) return true;
  return !items_.empty() && now >= last_sent_ + resend_after;
}

ControlFrame ControlChannel::Take(Clock::time_point now,
                                  std::chrono::milliseconds resend_after) {
  ControlFrame frame;
  frame.epoch = epoch_;
  frame.acked_epoch = peer_epoch_;
  frame.acked = expected_;
  owes_ack_ = false;
  const bool again =
      !items_.empty() && unsent_ > first_ && now >= last_sent_ + resend_after;
  frame.first = again ? first_ : unsent_;
  const uint64_t end =
      std::min(first_ + items_.size(), frame.first + kItemsPerFrame);
  for (uint64_t number = frame.first; number < end; ++number) {
    frame.items.push_back(items_[number - first_].item);
  }
  if (!frame.items.empty()) last_sent_ = now;
  unsent_ = std::max(unsent_, end);
  return frame;
}

ControlChannel::Received ControlChannel::Receive(const ControlFrame& frame) {
  Received received;
  if (frame.acked_epoch == epoch_) {
    while (first_ < frame.acked && first_ < unsent_ && !items_.empty()) {
      if (items_.front().acked) {
        received.acked.push_back(std::move(items_.front().acked));
      }
      items_.pop_front();
      ++first_;
    }
  }
  if (frame.epoch > peer_epoch_) {
    peer_epoch_ = frame.epoch;
    expected_ = 1;
  }
  if (frame.items.empty() || frame.epoch < peer_epoch_) return received;
  owes_ack_ = true;
  // A gap means that an earlier frame was lost or is late: all that follows it
  // will come again.
  if (frame.first > expected_) return received;
  for (uint64_t i = expected_ - frame.first; i < frame.items.size(); ++i) {
    received.items.push_back(frame.items[i]);
    ++expected_;
  }
  return received;
}

void ControlChannel::Reset() {
  items_.clear();
  ++epoch_;
  first_ = unsent_ = 1;
  last_sent_ = {};
}

}  // namespace baton::rpc::internal
