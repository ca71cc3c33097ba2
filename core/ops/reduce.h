// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// Reductions accumulate f16 and bf16 in f32. The order of summation depends on
// the shape and strides alone (on a GPU also on its model), so results are
// equal from run to run and for any number of threads.
namespace baton::ops {

struct ValuesAndIndices {
  Tensor values;
  Tensor indices;  // i64
};

// Sums of integers and bools are i64; SumTo keeps the dtype.
Tensor Sum(const Tensor& x);  // shape []
Tensor Sum(const Tensor& x, const std::vector<int>& axes,
           bool keep_dims = false);
Tensor Mean(const Tensor& x);
Tensor Mean(const Tensor& x, const std::vector<int>& axes,
            bool keep_dims = false);
// The first of equal maxima.
ValuesAndIndices Max(const Tensor& x, int axis, bool keep_dims = false);
ValuesAndIndices Min(const Tensor& x, int axis, bool keep_dims = false);
Tensor ArgMax(const Tensor& x, int axis, bool keep_dims = false);
// The gradient of broadcasting: sums `x` down to `shape`.
Tensor SumTo(const Tensor& x, const Shape& shape);

}  // namespace baton::ops
