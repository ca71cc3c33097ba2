// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/control_channel.h"

#include <algorithm>
#include <utility>

namespace baton::rpc::internal {

void ControlChannel::Push(ControlItem item, Acked acked) {
  items_.push_back({.item = item, .acked = std::move(acked)});
}

bool ControlChannel::Overdue(Clock::time_point now,
                             std::chrono::milliseconds resend_after) const {
  return unsent_ > first_ && now >= items_.front().sent + resend_after;
}

bool ControlChannel::Due(Clock::time_point now,
                         std::chrono::milliseconds resend_after) const {
  if (owes_ack_ || next_ < std::min(end(), first_ + window_)) return true;
  return Overdue(now, resend_after);
}

// While a peer is silent, only one frame is resent every `resend_after`. Each
// acknowledgement doubles the window, so that nothing waits for a timer once
// the peer is back.
ControlFrame ControlChannel::Take(Clock::time_point now,
                                  std::chrono::milliseconds resend_after) {
  if (next_ > first_ && Overdue(now, resend_after)) {
    window_ = kItemsPerFrame;
    next_ = first_;
  }
  ControlFrame frame;
  frame.epoch = epoch_;
  frame.acked = expected_;
  frame.first = next_;
  owes_ack_ = false;
  const uint64_t last =
      std::min({end(), first_ + window_, next_ + kItemsPerFrame});
  for (; next_ < last; ++next_) {
    Waiting& next = items_[next_ - first_];
    next.sent = now;
    frame.items.push_back(next.item);
  }
  unsent_ = std::max(unsent_, next_);
  return frame;
}

ControlChannel::Received ControlChannel::Receive(const ControlFrame& frame) {
  Received received;
  if (frame.epoch != epoch_) {
    if (frame.epoch < epoch_) TellEpoch();
    return received;
  }
  if (frame.acked > first_) window_ = std::min(2 * window_, kLargestWindow);
  while (first_ < std::min(frame.acked, unsent_)) {
    if (items_.front().acked) {
      received.acked.push_back(std::move(items_.front().acked));
    }
    items_.pop_front();
    ++first_;
  }
  next_ = std::max(next_, first_);
  if (frame.items.empty()) return received;
  owes_ack_ = true;
  // A gap means that an earlier frame was lost or is late. All items from the
  // gap on will be resent.
  if (frame.first > expected_) return received;
  uint64_t number = frame.first;
  for (const ControlItem& item : frame.items) {
    if (number++ < expected_) continue;  // has come before
    received.items.push_back(item);
    ++expected_;
  }
  return received;
}

void ControlChannel::Resume() {
  next_ = first_;
  window_ = kItemsPerFrame;
}

void ControlChannel::Follow(uint64_t epoch) {
  *this = ControlChannel();
  epoch_ = epoch;
}

}  // namespace baton::rpc::internal
