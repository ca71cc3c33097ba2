// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace baton {

// Another clock, a GPU's or another machine's, that was read between two
// readings of the steady one. Plain data.
struct ClockReading {
  int64_t asked_ns = 0;
  int64_t read_ns = 0;
  int64_t answered_ns = 0;

  int64_t took_ns() const { return answered_ns - asked_ns; }
  // By the steady clock, off by half of what it took at most.
  int64_t middle_ns() const { return asked_ns + took_ns() / 2; }
};

// The one that says most: what delays a reading delays it one way more than the
// other. There is at least one.
inline const ClockReading& Fastest(const std::vector<ClockReading>& readings) {
  return *std::min_element(readings.begin(), readings.end(),
                           [](const ClockReading& a, const ClockReading& b) {
                             return a.took_ns() < b.took_ns();
                           });
}

}  // namespace baton
