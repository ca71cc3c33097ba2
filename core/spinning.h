// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

namespace baton {

// Whether to spin for a short while, instead of going to sleep at once: it
// is worth it as long as what is waited for mostly comes sooner than a thread
// is put to sleep and woken. Learns that by what it is told. Not where this
// process may use few cores, unless BATON_SPIN in its environment says
// otherwise: on, off, or for how long at most, as in 2ms. Thread-compatible.
class Spinning {
 public:
  // For its waits for whatever.
  static Spinning& OfThisThread();

  // What is waited for from now on...
  void Restart() { since_ = Clock::now(); }
  // ...has come, whether somebody looked on or slept until then. Restarts.
  void Came();
  // A moment passes. False when it is time to sleep.
  bool Wait();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_{};
  int worth_ = 0;
};

}  // namespace baton
