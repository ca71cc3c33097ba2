// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

namespace baton::tools {

// Distinguishes a signal that arrives twice for one reason, because timeout(1)
// and others send it to a process and then to its group, from a deliberate
// second one. Thread-compatible.
class SignalEcho {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kWithin{200};

  // Returns true if this signal repeats the first one soon after it. Call it
  // for each signal.
  bool IsEcho(int signal, Clock::time_point now = Clock::now()) {
    if (first_ == 0) {
      first_ = signal;
      came_ = now;
      return false;
    }
    return signal == first_ && now - came_ < kWithin;
  }

 private:
  int first_ = 0;
  Clock::time_point came_;
};

}  // namespace baton::tools
