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
// items make one frame. Thread-compatible.
class ControlChannel {
 public:
  using Clock = std::chrono::steady_clock;
  using Acked = std::function<void()>;

  void Push(ControlItem item, Acked acked);

  // True when a frame should be sent now: something is new, or unanswered for
  // `resend_after`, or the other side waits for an acknowledgement.
  bool Due(Clock::time_point now, std::chrono::milliseconds resend_after) const;
  // The frame to send; at most some hundred items, call while Due.
  ControlFrame Take(Clock::time_point now,
                    std::chrono::milliseconds resend_after);

  struct Received {
    std::vector<ControlItem> items;  // new ones, in order
    std::vector<Acked> acked;        // to be called
  };
  Received Receive(const ControlFrame& frame);

  // Drops what waits and begins a new epoch: the other side is gone.
  void Reset();

  size_t waiting() const { return items_.size(); }

 private:
  struct Waiting {
    ControlItem item;
    Acked acked;
  };
  std::deque<Waiting> items_;  // numbers first_, first_ + 1, ...
  uint64_t epoch_ = 1;
  uint64_t first_ = 1;
  uint64_t unsent_ = 1;  // number of the first item never sent
  Clock::time_point last_sent_{};
  uint64_t peer_epoch_ = 0;
  uint64_t expected_ = 1;
  bool owes_ack_ = false;
};

}  // namespace baton::rpc::internal
