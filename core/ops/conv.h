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

// Convolves x [N, C, H, W] with weight [O, C/groups, kH, kW] and adds bias [O],
// unless it is undefined. All have one floating dtype; f16 and bf16 are summed
// in f32. The result is channels-last if x is. On a GPU it is fastest if x and
// weight are channels-last: the weight is then not copied. core/conv_tuning.h
// says how algorithms are chosen there.
Tensor Conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options);
Tensor Conv2dBackwardInput(const Tensor& dy, const Tensor& weight,
                           const Shape& x_shape, const Conv2dOptions& options);
// Adds the gradient of the input to `sum`. On a GPU the convolution itself
// adds, so this costs no further pass over `sum`.
void Conv2dAddBackwardInput(const Tensor& sum, const Tensor& dy,
                            const Tensor& weight, const Conv2dOptions& options);
// Returns the gradient in the memory order `order`; the weight's own is best.
Tensor Conv2dBackwardWeight(const Tensor& dy, const Tensor& x,
                            const Shape& weight_shape,
                            const Conv2dOptions& options,
                            MemoryFormat order = MemoryFormat::kContiguous);

}  // namespace baton::ops
