// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/pool.h"
#include "core/tensor.h"

// Pooling of f32 or f64 on the CPU, checked before. Results lie in the memory
// order of the first argument or in `format`.
namespace baton::cpu {

// workspace: i32, like y; the place of each maximum in its window.
ops::MaxPool2dResult MaxPool(const Tensor& x, const Shape& y_shape,
                             const ops::Pool2dOptions& options);
Tensor MaxPoolBackward(const Tensor& dy, const Tensor& workspace,
                       const Shape& x_shape, const ops::Pool2dOptions& options);

// Means over windows: [start, end) of rows and columns for each output cell,
// divided by `divisor`; by the window's own size where that is 0.
struct Windows {
  std::vector<int64_t> row_start, row_end, column_start, column_end;
  int64_t divisor = 0;
};
Tensor MeanPool(const Tensor& x, const Windows& windows);
Tensor MeanPoolBackward(const Tensor& dy, const Shape& x_shape,
                        const Windows& windows, MemoryFormat format);

}  // namespace baton::cpu
