// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>

#include "core/tensor.h"

namespace baton::ops {

// Pooling takes floating images x [N, C, H, W]. Padding is at most half of the
// kernel. Results have the memory order of x.
struct Pool2dOptions {
  std::array<int64_t, 2> kernel = {2, 2};  // height, width
  std::array<int64_t, 2> stride = {2, 2};
  std::array<int64_t, 2> padding = {0, 0};
};

struct MaxPool2dResult {
  Tensor y;
  Tensor workspace;  // opaque: the position of each maximum
};
MaxPool2dResult MaxPool2d(const Tensor& x, const Pool2dOptions& options);
// `workspace` is that of MaxPool2d. The result has the memory order of its x.
Tensor MaxPool2dBackward(const Tensor& dy, const Tensor& workspace,
                         const Shape& x_shape, const Pool2dOptions& options);
// The mean includes the padding, as PyTorch's does by default.
Tensor AvgPool2d(const Tensor& x, const Pool2dOptions& options);
Tensor AvgPool2dBackward(const Tensor& dy, const Shape& x_shape,
                         const Pool2dOptions& options);
// Output row i is the mean of rows floor(i*H/h) .. ceil((i+1)*H/h); columns
// likewise.
Tensor AdaptiveAvgPool2d(const Tensor& x, int64_t height, int64_t width);
Tensor AdaptiveAvgPool2dBackward(const Tensor& dy, const Tensor& x);

}  // namespace baton::ops
