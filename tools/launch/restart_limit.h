// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

namespace baton::tools {

// When to start a failed process again. Plain data.
struct RestartPolicy {
  using Duration = std::chrono::milliseconds;

  int most = 0;  // restarts within any `window`
  Duration window{300'000};
  // The pause before a restart if the process failed within `soon` of its last
  // restart; it doubles each time, up to `longest_pause`. Otherwise there is no
  // pause.
  Duration pause{100};
  Duration longest_pause{30'000};
  Duration soon{10'000};
};

// Distinguishes a process that fails now and then from one that cannot run.
// Thread-compatible.
class RestartLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RestartLimit(const RestartPolicy& policy) : policy_(policy) {}

  // Counts a restart and returns the pause before it; nullopt if there have
  // been too many.
  std::optional<RestartPolicy::Duration> Take(
      Clock::time_point now = Clock::now()) {
    while (!taken_.empty() && now - taken_.front() >= policy_.window)
      taken_.pop_front();
    if (taken_.size() >= static_cast<size_t>(policy_.most)) return std::nullopt;
    if (started_ && now - *started_ < policy_.soon) {
      pause_ =
          std::max(policy_.pause, std::min(2 * pause_, policy_.longest_pause));
    } else {
      pause_ = RestartPolicy::Duration(0);
    }
    started_ = now + pause_;
    taken_.push_back(now);
    return pause_;
  }
  // Returns how many restarts the window had at the last Take.
  size_t taken() const { return taken_.size(); }

 private:
  const RestartPolicy policy_;
  std::optional<Clock::time_point> started_;  // of the last restart
  RestartPolicy::Duration pause_{0};          // before the last restart
  std::deque<Clock::time_point> taken_;
};

}  // namespace baton::tools
