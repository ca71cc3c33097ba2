// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

namespace baton::tools {

// Tells a signal that comes twice for one reason, as timeout(1) and others send
// it to a process and then to its group, from a second one that is meant.
// Thread-compatible.
class SignalEcho {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kWithin{200};

  // True for what repeats the first signal soon after it. To be asked of each.
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
