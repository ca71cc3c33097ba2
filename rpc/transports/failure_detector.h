// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>

namespace baton::rpc {

// When one end of a connection must speak, and when the other end counts as
// lost because it does not. Each end tells the other its lease, the longest
// silence that it bears. A beat is 0.19 of the shorter lease: an end that
// has said nothing else for a beat says so, and one that is not heard for four
// beats of this end's lease in a row is silent, after 0.76 to 0.95 of the
// lease.
//
// Only beats that came when they were due count: a process that was stopped or
// starved itself has no right to call others silent. Where beats come a little
// late the machine is busy, and the other end may be later still: twice that is
// forgiven it, half a lease at most, and no more: whom only that keeps is
// looked at once more as soon as it is over, between two beats. An eighth of an
// interval in all is as late as timers are, and forgives nothing.
// Thread-compatible.
class FailureDetector {
 public:
  using Clock = std::chrono::steady_clock;

  FailureDetector() = default;
  // The leases of this end and of the other one; 0 for one that never ends.
  FailureDetector(std::chrono::milliseconds own,
                  std::chrono::milliseconds other, Clock::time_point now);

  // Between two calls of Beat; 0 when none are needed.
  std::chrono::milliseconds interval() const { return interval_; }
  // When to call Beat next: at multiples of the interval past `phase` ns, so
  // that connections with one phase beat together, or before the next of them
  // where the other end is about to be silent. Within the interval.
  Clock::time_point Next(Clock::time_point now, uint64_t phase);
  void Heard() { heard_ = true; }
  void Spoke() { spoke_ = true; }

  struct Due {
    bool speak = false;
    bool silent = false;
  };
  Due Beat(Clock::time_point now);

 private:
  // How much longer the other end may stay unheard.
  Clock::duration Left() const;

  std::chrono::milliseconds own_{0};
  std::chrono::milliseconds interval_{0};
  Clock::time_point due_{};
  std::chrono::milliseconds unheard_{0};
  Clock::duration forgiven_{0};
  bool between_ = false;  // two beats, the next call of Beat
  bool heard_ = false;
  bool spoke_ = false;
};

}  // namespace baton::rpc
