// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {

using Doubles = std::vector<double>;

inline Doubles ToDoubles(const Tensor& tensor) {
  return tensor.To(DType::kF64).ToVector<double>();
}

struct NormCase {
  Shape shape;
  MemoryFormat format = MemoryFormat::kContiguous;
  DType dtype = DType::kF32;
  bool relu = false;
  bool residual = false;
};

inline std::string Describe(const NormCase& c) {
  return c.shape.ToString() + Name(c.dtype) +
         (c.format == MemoryFormat::kChannelsLast ? " last" : "") +
         (c.relu ? " relu" : "") + (c.residual ? " residual" : "");
}

inline std::vector<NormCase> NormCases() {
  std::vector<NormCase> cases;
  for (const Shape& shape :
       {Shape({4, 3}), Shape({2, 5, 7}), Shape({3, 16, 4, 4}),
        Shape({2, 7, 13, 11}), Shape({40, 64, 9, 9}), Shape({2, 3, 2, 2, 3})}) {
    for (MemoryFormat format :
         {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
      for (bool relu : {false, true}) {
        for (bool residual : {false, true}) {
          for (DType dtype : {DType::kF32, DType::kF64})
            cases.push_back({shape, format, dtype, relu, residual});
        }
      }
    }
  }
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    cases.push_back(
        {{3, 16, 4, 4}, MemoryFormat::kChannelsLast, dtype, true, true});
    cases.push_back(
        {{3, 16, 4, 4}, MemoryFormat::kContiguous, dtype, true, false});
  }
  return cases;
}

// Batch norm by its definition, over row-major arrays in double.
struct NormReference {
  NormReference(const Shape& shape, const Doubles& x_in,
                const Doubles& gamma_in, const Doubles& beta_in, double eps)
      : channels(static_cast<size_t>(shape[1])),
        inner(x_in.size() / (static_cast<size_t>(shape[0]) * channels)),
        count(static_cast<double>(x_in.size() / channels)),
        x(x_in),
        gamma(gamma_in),
        beta(beta_in),
        mean(channels, 0.0),
        variance(channels, 0.0),
        epsilon(eps) {
    for (size_t i = 0; i < x.size(); ++i) mean[channel(i)] += x[i] / count;
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = x[i] - mean[channel(i)];
      variance[channel(i)] += d * d / count;
    }
  }
  size_t channel(size_t i) const { return i / inner % channels; }
  double inverse(size_t c) const {
    return 1.0 / std::sqrt(variance[c] + epsilon);
  }
  double normal(size_t i) const {
    return (x[i] - mean[channel(i)]) * inverse(channel(i));
  }
  Doubles Forward(const Doubles& residual, bool relu) const {
    Doubles y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = normal(i) * gamma[channel(i)] + beta[channel(i)];
      if (!residual.empty()) y[i] += residual[i];
      if (relu) y[i] = std::max(y[i], 0.0);
    }
    return y;
  }

  size_t channels, inner;
  double count;
  Doubles x, gamma, beta, mean, variance;
  double epsilon;
};

struct NormInputs {
  explicit NormInputs(const NormCase& c)
      : x(test::Put(testing::Numbers(c.shape, c.dtype, 1, c.format))),
        residual(c.residual ? test::Put(testing::Numbers(c.shape, c.dtype, 2,
                                                         c.format))
                            : Tensor()),
        dy(test::Put(testing::Numbers(c.shape, c.dtype, 3, c.format))),
        gamma(test::Put(testing::Numbers({c.shape[1]}, c.dtype, 4))),
        beta(test::Put(testing::Numbers({c.shape[1]}, c.dtype, 5))) {}
  Tensor x, residual, dy, gamma, beta;
};

inline NormReference ReferenceOf(const NormCase& c, const NormInputs& in,
                                 double eps) {
  return NormReference(c.shape, ToDoubles(in.x), ToDoubles(in.gamma),
                       ToDoubles(in.beta), eps);
}

}  // namespace baton::ops
