// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace baton::sim {

// Splitmix64: gives the same numbers for a seed on every machine. Each part of
// a simulation has its own, so that removing a fault changes as little else as
// possible. Thread-compatible.
class Rng {
 public:
  explicit Rng(uint64_t seed = 0) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns a number below `bound`, which must not be 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  // Returns a number from `least` to `most`.
  int64_t Between(int64_t least, int64_t most) {
    return least +
           static_cast<int64_t>(Below(static_cast<uint64_t>(most - least + 1)));
  }
  bool Chance(double probability) {
    return static_cast<double>(Next() >> 11) * 0x1p-53 < probability;
  }

 private:
  uint64_t state_;
};

}  // namespace baton::sim
