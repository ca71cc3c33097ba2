// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>

#include "core/tensor.h"

namespace baton::ops {

struct Conv2dOptions {
  std::array<int64_t, 2> stride = {1, 1};  // height, width
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
};

// x [N, C, H, W], weight [O, C/groups, kH, kW], bias [O] or undefined. The
// result is channels-last when x is.
Tensor Conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options);
Tensor Conv2dBackwardInput(const Tensor& dy, const Tensor& weight,
                           const Shape& x_shape, const Conv2dOptions& options);
Tensor Conv2dBackwardWeight(const Tensor& dy, const Tensor& x,
                            const Shape& weight_shape,
                            const Conv2dOptions& options);

}  // namespace baton::ops
