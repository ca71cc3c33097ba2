// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace baton::data {

// Random numbers for one sample. They depend only on seed, epoch and index, so
// that a sample looks the same whichever worker prepares it. Uses SplitMix64
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014). Thread-compatible.
class SampleRandom {
 public:
  explicit SampleRandom(uint64_t seed, uint64_t epoch = 0, uint64_t index = 0)
      : state_(Mix(Mix(Mix(seed) + epoch) + index)) {}

  uint64_t Next() {
    state_ += kGolden;
    return Mix(state_);
  }
  // Returns a number in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  double Uniform(double low, double high) {
    return low + (high - low) * Uniform();
  }
  // Returns an integer in [0, count); count > 0. The bias is at most count /
  // 2^53.
  int64_t Below(int64_t count) {
    return static_cast<int64_t>(Uniform() * static_cast<double>(count));
  }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) + kGolden;
  }
  uint64_t state_;
};

}  // namespace baton::data
