// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace baton {

// One reading of another clock, such as a GPU's or another machine's, between
// two readings of the steady clock. Plain data.
struct ClockReading {
  int64_t asked_ns = 0;
  int64_t read_ns = 0;
  int64_t answered_ns = 0;

  int64_t took_ns() const { return answered_ns - asked_ns; }
  // The time of the reading by the steady clock; its error is at most half of
  // took_ns().
  int64_t middle_ns() const { return asked_ns + took_ns() / 2; }
};

// Returns the most precise reading: a delay adds more to one side of a reading
// than to the other. There must be at least one.
inline const ClockReading& Fastest(const std::vector<ClockReading>& readings) {
  return *std::min_element(readings.begin(), readings.end(),
                           [](const ClockReading& a, const ClockReading& b) {
                             return a.took_ns() < b.took_ns();
                           });
}

}  // namespace baton
