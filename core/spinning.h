// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

namespace baton {

// Decides whether a wait should spin for a short while before the thread
// sleeps. That pays while most waits are shorter than it takes to put a thread
// to sleep and wake it; this class learns it from the waits that it is told of.
// Spinning is off if this process may use only few cores, unless BATON_SPIN in
// its environment says "on", "off", or the longest time, as in "2ms".
// Thread-compatible.
class Spinning {
 public:
  // The instance for all waits of this thread.
  static Spinning& OfThisThread();

  // Call this when a wait begins.
  void Restart() { since_ = Clock::now(); }
  // Call this when the wait has ended, by spinning or by sleeping; it also
  // begins the next wait.
  void Came();
  // Spins for a moment. Returns false when it is time to sleep.
  bool Wait();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_{};
  int worth_ = 0;
};

}  // namespace baton
