// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// Reductions, which accumulate f16 and bf16 in f32. The order of summation
// depends only on shape and strides (on a GPU also on its model), so results
// are equal from run to run and for any number of threads.
namespace baton::ops {

struct ValuesAndIndices {
  Tensor values;
  Tensor indices;  // i64
};

// Sums of integers and bools are i64.
Tensor Sum(const Tensor& x);  // shape []
Tensor Sum(const Tensor& x, const std::vector<int>& axes,
           bool keep_dims = false);
Tensor Mean(const Tensor& x);
Tensor Mean(const Tensor& x, const std::vector<int>& axes,
            bool keep_dims = false);
// Max, Min and ArgMax find the first of equal elements; the axis must not be
// empty.
ValuesAndIndices Max(const Tensor& x, int axis, bool keep_dims = false);
ValuesAndIndices Min(const Tensor& x, int axis, bool keep_dims = false);
Tensor ArgMax(const Tensor& x, int axis, bool keep_dims = false);
// Sums `x` down to `shape`, which is the gradient of broadcasting. Keeps the
// dtype.
Tensor SumTo(const Tensor& x, const Shape& shape);

}  // namespace baton::ops
