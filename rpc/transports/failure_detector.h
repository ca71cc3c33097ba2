// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>

namespace baton::rpc {

// Decides when one end of a connection must send a beat, and when the other end
// counts as silent. Each end tells the other its lease, the longest silence
// that it accepts. The interval between beats is 0.19 of the shorter lease. An
// end that has sent nothing else for an interval sends a beat. An end that is
// not heard for four beats of this end's lease in a row is silent; that takes
// 0.76 to 0.95 of the lease.
//
// Time in which this process was itself stopped or starved (Beat is late by
// more than an interval) does not count. If Beat is called a little late, the
// machine is busy and the other end may be later still, so it gets twice that
// lateness as extra time, at most half a lease in all. If only the extra time
// keeps it from being silent, it is checked once more when that time ends,
// between two beats. Lateness of up to an eighth of an interval in all is usual
// for timers and gives no extra time. Thread-compatible.
class FailureDetector {
 public:
  using Clock = std::chrono::steady_clock;

  FailureDetector() = default;
  // The leases of this end and of the other one; 0 means no limit.
  FailureDetector(std::chrono::milliseconds own,
                  std::chrono::milliseconds other, Clock::time_point now);

  // The time between two calls of Beat; 0 if none are needed.
  std::chrono::milliseconds interval() const { return interval_; }
  // Returns when to call Beat next, at most one interval from now. This is a
  // multiple of the interval past `phase` ns, so that connections with one
  // phase beat together, or earlier if the other end is about to become silent.
  Clock::time_point Next(Clock::time_point now, uint64_t phase);
  void Heard() { heard_ = true; }
  void Spoke() { spoke_ = true; }

  struct Due {
    bool speak = false;
    bool silent = false;
  };
  Due Beat(Clock::time_point now);

 private:
  // How much longer the other end may stay silent.
  Clock::duration Left() const;

  std::chrono::milliseconds own_{0};
  std::chrono::milliseconds interval_{0};
  Clock::time_point due_{};
  std::chrono::milliseconds unheard_{0};
  Clock::duration forgiven_{0};
  bool between_ = false;  // the next call of Beat is between two beats
  bool heard_ = false;
  bool spoke_ = false;
};

}  // namespace baton::rpc
