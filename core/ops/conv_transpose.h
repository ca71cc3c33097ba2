// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>

#include "core/tensor.h"

namespace baton::ops {

struct ConvTranspose2dOptions {
  std::array<int64_t, 2> stride = {1, 1};  // height, width
  std::array<int64_t, 2> padding = {0, 0};
  // The rows and columns of y beyond the smallest image whose convolution has
  // x's size. Each number must be less than the stride or the dilation.
  std::array<int64_t, 2> output_padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
};

// Computes the transposed convolution, as Conv2dBackwardInput does, but as an
// op with a bias and gradients. x is [N, C, H, W], weight [C, O/groups, kH,
// kW], bias [O] or undefined; all have one floating dtype. y is [N, O, H', W']
// with H' = (H - 1) * stride - 2 * padding + dilation * (kH - 1) +
// output_padding + 1. Memory orders and the dtype of sums are as in
// core/ops/conv.h.
Tensor ConvTranspose2d(const Tensor& x, const Tensor& weight,
                       const Tensor& bias,
                       const ConvTranspose2dOptions& options);
Tensor ConvTranspose2dBackwardInput(const Tensor& dy, const Tensor& weight,
                                    const ConvTranspose2dOptions& options);
// Returns the gradient in the memory order `order`; the weight's own is best.
Tensor ConvTranspose2dBackwardWeight(
    const Tensor& dy, const Tensor& x, const Shape& weight_shape,
    const ConvTranspose2dOptions& options,
    MemoryFormat order = MemoryFormat::kContiguous);

}  // namespace baton::ops
