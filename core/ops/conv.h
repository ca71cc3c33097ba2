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

// x [N, C, H, W], weight [O, C/groups, kH, kW], bias [O] or undefined, all of
// one floating dtype; f16 and bf16 are summed in f32. The result is
// channels-last when x is. On a GPU a channels-last x is fastest, and with it a
// channels-last weight, which is then not copied (core/conv_tuning.h says how
// algorithms are chosen there).
Tensor Conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options);
Tensor Conv2dBackwardInput(const Tensor& dy, const Tensor& weight,
                           const Shape& x_shape, const Conv2dOptions& options);
// Adds it to `sum`; on a GPU in the one pass over `sum` that writing it takes.
void Conv2dAddBackwardInput(const Tensor& sum, const Tensor& dy,
                            const Tensor& weight, const Conv2dOptions& options);
// The gradient lies in `order`, best the weight's own.
Tensor Conv2dBackwardWeight(const Tensor& dy, const Tensor& x,
                            const Shape& weight_shape,
                            const Conv2dOptions& options,
                            MemoryFormat order = MemoryFormat::kContiguous);

}  // namespace baton::ops
