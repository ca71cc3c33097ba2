// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/embedding_rows/zipf.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/status.h"

namespace baton::examples {
namespace {

constexpr char kOp[] = "zipf";
constexpr int64_t kStride = 7'368'787;  // prime

// These return log(1 + x) / x and (exp(x) - 1) / x, also for x = 0, which
// occurs for a skew of 1.
double LogRatio(double x) { return x == 0 ? 1 : std::log1p(x) / x; }
double ExpRatio(double x) { return x == 0 ? 1 : std::expm1(x) / x; }

int64_t CheckedCount(int64_t count, double skew) {
  Require(count >= 1, kOp, "expected a number or more to draw, got ", count);
  Require(skew >= 0, kOp, "expected a skew of 0 or more, got ", skew);
  return count;
}

}  // namespace

Zipf::Zipf(int64_t count, double skew, uint64_t seed)
    : count_(CheckedCount(count, skew)),
      skew_(skew),
      begin_(Integral(1.5) - 1),
      end_(Integral(static_cast<double>(count) + 0.5)),
      sure_(2 - InverseIntegral(Integral(2.5) - Density(2))),
      stride_(std::gcd(kStride, count) == 1 ? kStride : 1),
      random_(seed) {}

double Zipf::Density(double x) const { return std::pow(x, -skew_); }

double Zipf::Integral(double x) const {
  const double log = std::log(x);
  return ExpRatio((1 - skew_) * log) * log;
}

double Zipf::InverseIntegral(double area) const {
  // Rounding could otherwise make the logarithm's argument negative.
  return std::exp(LogRatio(std::max(area * (1 - skew_), -1.0)) * area);
}

// Draws a point in the area under the density. It belongs to the rank within
// half a step of it, and is rejected if it lies outside that rank's own
// probability.
int64_t Zipf::DrawRank() {
  for (;;) {
    const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;
    const double area = end_ + uniform * (begin_ - end_);
    const double x = InverseIntegral(area);
    const int64_t rank = std::clamp<int64_t>(std::llround(x), 1, count_);
    const auto exact = static_cast<double>(rank);
    if (exact - x <= sure_ || area >= Integral(exact + 0.5) - Density(exact))
      return rank;
  }
}

Tensor Zipf::Draw(int64_t n) {
  const Tensor numbers = Tensor::Empty({n}, {.dtype = DType::kI64});
  int64_t* to = numbers.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) to[i] = (DrawRank() - 1) * stride_ % count_;
  return numbers;
}

}  // namespace baton::examples
