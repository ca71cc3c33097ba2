// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

// Times of something that is done again and again.
namespace baton::bench {

using Clock = std::chrono::steady_clock;

inline double Microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// The value below which that part of the values lies; 0.5 for the median.
inline double Quantile(std::vector<double> values, double part) {
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<ptrdiff_t>(part * last + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}
inline double Median(std::vector<double> values) {
  return Quantile(std::move(values), 0.5);
}

// The times of `count` calls after `warm` others, in microseconds.
inline std::vector<double> TimesOf(int count, int warm,
                                   const std::function<void()>& call) {
  for (int i = 0; i < warm; ++i) call();
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    call();
    times.push_back(Microseconds(Clock::now() - begin));
  }
  return times;
}

// The median of `count` of them.
inline double TimeOf(int count, const std::function<void()>& call) {
  return Median(TimesOf(count, count / 10 + 2, call));
}

}  // namespace baton::bench
