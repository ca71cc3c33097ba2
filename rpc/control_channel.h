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

// Brings the ownership messages between two agents to the other side exactly
// once and in order, whatever is lost, doubled or reordered underneath: items
// are numbered, acknowledged cumulatively, and sent again until they are. Many
// items make one frame.
//
// All that two incarnations say to each other belongs to an epoch. Who gives
// the other one up begins the next; the other one sees that in whatever comes
// next, gives up its part as well and follows. Both begin with 1.
// Thread-compatible.
class ControlChannel {
 public:
  using Clock = std::chrono::steady_clock;
  using Acked = std::function<void()>;

  void Push(ControlItem item, Acked acked);

  // True when a frame should be sent now: something is new and not too much is
  // unanswered, or something is for `resend_after`, or the other side waits for
  // an acknowledgement.
  bool Due(Clock::time_point now, std::chrono::milliseconds resend_after) const;
  // The frame to send; at most some hundred items, call while Due.
  ControlFrame Take(Clock::time_point now,
                    std::chrono::milliseconds resend_after);

  struct Received {
    std::vector<ControlItem> items;  // new ones, in order
    std::vector<Acked> acked;        // to be called
  };
  // Of a frame of an earlier epoch only the sender is told that it is over.
  Received Receive(const ControlFrame& frame);
  // The other side is heard again after a break: what it has not acknowledged
  // is due at once.
  void Resume();

  uint64_t epoch() const { return epoch_; }
  // The other side is given up: drops what waits and begins the next epoch.
  void Reset() { Follow(epoch_ + 1); }
  // The same, into an epoch that the other side has begun.
  void Follow(uint64_t epoch);
  // The other side speaks of an earlier epoch: it must hear of this one.
  void TellEpoch() { owes_ack_ = true; }

  size_t waiting() const { return items_.size(); }

 private:
  struct Waiting {
    ControlItem item;
    Acked acked;
  };
  static constexpr uint64_t kItemsPerFrame = 256;
  static constexpr uint64_t kLargestWindow = 16 * kItemsPerFrame;

  uint64_t end() const { return first_ + items_.size(); }
  bool Overdue(Clock::time_point now,
               std::chrono::milliseconds resend_after) const;

  std::deque<Waiting> items_;  // numbers first_, first_ + 1, ...
  uint64_t epoch_ = 1;
  uint64_t first_ = 1;
  uint64_t next_ = 1;    // number of the first item to send, perhaps again
  uint64_t unsent_ = 1;  // number of the first item never sent
  uint64_t window_ = kLargestWindow;  // items that may be unanswered at a time
  Clock::time_point last_sent_{};
  uint64_t expected_ = 1;
  bool owes_ack_ = false;
};

}  // namespace baton::rpc::internal
