// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

namespace baton::tools {

// Tells a process that fails now and then, and is worth starting again, from
// one that will not run: `most` starts again within any `window`.
// Thread-compatible.
class RestartLimit {
 public:
  using Clock = std::chrono::steady_clock;

  RestartLimit(int most, Clock::duration window)
      : most_(static_cast<size_t>(most)), window_(window) {}

  // Whether it may be started again now, which then counts.
  bool Take(Clock::time_point now = Clock::now()) {
    while (!taken_.empty() && now - taken_.front() >= window_)
      taken_.pop_front();
    if (taken_.size() >= most_) return false;
    taken_.push_back(now);
    return true;
  }
  // Of the window that ended with the last Take.
  size_t taken() const { return taken_.size(); }

 private:
  const size_t most_;
  const Clock::duration window_;
  std::deque<Clock::time_point> taken_;
};

}  // namespace baton::tools
