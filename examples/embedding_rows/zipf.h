// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <random>

#include "core/tensor.h"

namespace baton::examples {

// Draws numbers that are as unevenly popular as items are with users: the k-th
// most popular of `count` has a probability proportional to k^-skew. Needs no
// table: draws by rejection from an integral that can be inverted (Hoermann and
// Derflinger, 1996). Thread-compatible.
class Zipf {
 public:
  // With a skew of 0 all numbers are equally likely. Throws Error for a count
  // below 1 or a skew below 0.
  Zipf(int64_t count, double skew, uint64_t seed);

  // Returns i64 [n] of numbers in 0 .. count - 1, among which the popular ones
  // are spread.
  Tensor Draw(int64_t n);

 private:
  double Density(double x) const;   // x^-skew
  double Integral(double x) const;  // of the density, from 1 to x
  double InverseIntegral(double area) const;
  int64_t DrawRank();

  const int64_t count_;
  const double skew_;
  const double begin_, end_;  // of the areas to draw from
  const double sure_;     // a rank this little above a draw is never rejected
  const int64_t stride_;  // between the numbers of successive ranks
  std::mt19937_64 random_;
};

}  // namespace baton::examples
