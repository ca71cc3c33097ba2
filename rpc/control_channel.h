// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "rpc/frames.h"

namespace baton::rpc::internal {

// One end of the channel for ownership messages between two agents. It delivers
// items exactly once and in order even if frames are lost, duplicated or
// reordered: items are numbered, acknowledged cumulatively, and resent until
// they are acknowledged. A frame carries many items.
//
// All messages between two incarnations belong to an epoch, at first 1. A side
// that gives the other one up begins the next epoch. The other side sees this
// in the next message, gives up its own state and adopts the new epoch.
// Thread-compatible.
class ControlChannel {
 public:
  using Clock = std::chrono::steady_clock;
  using Acked = std::function<void()>;

  void Push(ControlItem item, Acked acked);

  // True if a frame should be sent now: there are items to send and the window
  // is not full, or the first item has been unacknowledged for `resend_after`,
  // or the other side waits for an acknowledgement.
  bool Due(Clock::time_point now, std::chrono::milliseconds resend_after) const;
  // Returns the next frame to send, of at most kItemsPerFrame items. Call it
  // while Due.
  ControlFrame Take(Clock::time_point now,
                    std::chrono::milliseconds resend_after);

  struct Received {
    std::vector<ControlItem> items;  // new ones, in order
    std::vector<Acked> acked;        // to be called
  };
  // A frame of another epoch is ignored; if it is of an earlier one, the sender
  // will be told the current epoch.
  Received Receive(const ControlFrame& frame);
  // To be called when the other side is heard again after a break: the items
  // that it has not acknowledged become due at once.
  void Resume();

  uint64_t epoch() const { return epoch_; }
  // Gives the other side up: drops all waiting items and begins the next epoch.
  void Reset() { Follow(epoch_ + 1); }
  // Like Reset, but adopts the epoch that the other side has begun.
  void Follow(uint64_t epoch);
  // Makes a frame due, since the other side must be told the current epoch.
  void TellEpoch() { owes_ack_ = true; }

  size_t waiting() const { return items_.size(); }

 private:
  struct Waiting {
    ControlItem item;
    Acked acked;
    Clock::time_point sent{};  // last
  };
  static constexpr uint64_t kItemsPerFrame = 256;
  static constexpr uint64_t kLargestWindow = 16 * kItemsPerFrame;

  uint64_t end() const { return first_ + items_.size(); }
  bool Overdue(Clock::time_point now,
               std::chrono::milliseconds resend_after) const;

  std::deque<Waiting> items_;  // numbers first_, first_ + 1, ...
  uint64_t epoch_ = 1;
  uint64_t first_ = 1;
  uint64_t next_ = 1;    // number of the next item to send or resend
  uint64_t unsent_ = 1;  // number of the first item never sent
  uint64_t window_ = kLargestWindow;  // most unacknowledged items
  uint64_t expected_ = 1;
  bool owes_ack_ = false;
};

}  // namespace baton::rpc::internal
