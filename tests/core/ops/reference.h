// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

// What the tests of kernels share: numbers that repeat, plain row-major arrays
// in double to compute references in, and comparison with a tolerance.
namespace baton::testing {

// A row-major [N, C, H, W] array; get() outside of H and W is zero. Its extents
// are plain numbers, since references take most of the time with sanitizers.
struct Array4 {
  explicit Array4(const Shape& shape_in)
      : Array4(shape_in,
               std::vector<double>(static_cast<size_t>(shape_in.numel()))) {}
  explicit Array4(const Tensor& tensor)
      : Array4(tensor.shape(), tensor.To(DType::kF64).ToVector<double>()) {}
  Array4(const Shape& shape_in, std::vector<double> values_in)
      : shape(shape_in),
        values(std::move(values_in)),
        channels(shape[1]),
        height(shape[2]),
        width(shape[3]) {}
  double& at(int64_t n, int64_t c, int64_t h, int64_t w) {
    return values[static_cast<size_t>(
        ((n * channels + c) * height + h) * width + w)];
  }
  bool inside(int64_t h, int64_t w) const {
    return h >= 0 && h < height && w >= 0 && w < width;
  }
  double get(int64_t n, int64_t c, int64_t h, int64_t w) {
    return inside(h, w) ? at(n, c, h, w) : 0.0;
  }
  Shape shape;
  std::vector<double> values;
  int64_t channels, height, width;
};

// Calls body(n, c, h, w) for every index of a 4-d shape.
template <typename Body>
void ForEach4(const Shape& shape, const Body& body) {
  const std::array<int64_t, 4> extents{shape[0], shape[1], shape[2], shape[3]};
  for (int64_t n = 0; n < extents[0]; ++n) {
    for (int64_t c = 0; c < extents[1]; ++c) {
      for (int64_t h = 0; h < extents[2]; ++h) {
        for (int64_t w = 0; w < extents[3]; ++w) body(n, c, h, w);
      }
    }
  }
}

// Numbers in [-1, 1), equal for equal seeds.
inline Tensor Numbers(const Shape& shape, DType dtype, uint64_t seed,
                      MemoryFormat format = MemoryFormat::kContiguous) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (double& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<double>(state >> 40) / (1 << 23) - 1.0;
  }
  const Tensor tensor = Tensor::From(values, shape).To(dtype);
  return shape.rank() == 4 ? tensor.Contiguous(format) : tensor;
}

inline double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-11;
    case DType::kF16:
      return 4e-3;
    case DType::kBF16:
      return 3e-2;
    default:
      return 2e-5;
  }
}

// Every element within tolerance * (1 + |expected| + the largest expected).
inline void ExpectNear(const Tensor& got, const Shape& shape,
                       const std::vector<double>& expected, double tolerance,
                       const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.shape(), shape) << what;
  const std::vector<double> values = got.To(DType::kF64).ToVector<double>();
  double largest = 0;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < values.size(); ++i) {
    const double slack = tolerance * (1.0 + std::abs(expected[i]) + largest);
    ASSERT_NEAR(values[i], expected[i], slack) << what << " at " << i;
  }
}

inline void ExpectNear(const Tensor& got, const Array4& expected,
                       double tolerance, const std::string& what) {
  ExpectNear(got, expected.shape, expected.values, tolerance, what);
}

// The text of the Error that `call` throws; "" when it throws none.
template <typename Call>
std::string ErrorOf(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace baton::testing
