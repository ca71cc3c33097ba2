// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <random>

#include "core/tensor.h"

namespace baton::examples {

// Draws numbers as users ask for things: the k-th most wanted of `count` with a
// probability in proportion to k^-skew. By rejection from an integral that can
// be inverted (Hoermann and Derflinger, 1996), which needs no table.
// Thread-compatible.
class Zipf {
 public:
  // Throws Error for a count below 1 or a skew below 0; with 0 all are wanted
  // equally.
  Zipf(int64_t count, double skew, uint64_t seed);

  // i64 [n] of 0 .. count - 1, over which the most wanted are spread.
  Tensor Draw(int64_t n);

 private:
  double Density(double x) const;   // x^-skew
  double Integral(double x) const;  // of the density, from 1 to x
  double InverseIntegral(double area) const;
  int64_t DrawRank();

  const int64_t count_;
  const double skew_;
  const double begin_, end_;  // of the areas that are drawn
  const double sure_;  // a rank so near above what was drawn is never rejected
  const int64_t stride_;  // between a rank's number and the next one's
  std::mt19937_64 random_;
};

}  // namespace baton::examples
