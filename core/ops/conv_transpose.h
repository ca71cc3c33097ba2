// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>

#include "core/tensor.h"

namespace baton::ops {

struct ConvTranspose2dOptions {
  std::array<int64_t, 2> stride = {1, 1};  // height, width
  std::array<int64_t, 2> padding = {0, 0};
  // Rows and columns that y has more than the smallest image whose convolution
  // is of x's size; each is less than the stride or the dilation.
  std::array<int64_t, 2> output_padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
};

// The gradient of Conv2d as an op of its own: x [N, C, H, W], weight
// [C, O/groups, kH, kW], bias [O] or undefined, all of one floating dtype. y is
// [N, O, H', W'] with H' = (H - 1) * stride - 2 * padding + dilation * (kH - 1)
// + output_padding + 1. Layouts and sums are those of core/ops/conv.h.
Tensor ConvTranspose2d(const Tensor& x, const Tensor& weight,
                       const Tensor& bias,
                       const ConvTranspose2dOptions& options);
Tensor ConvTranspose2dBackwardInput(const Tensor& dy, const Tensor& weight,
                                    const ConvTranspose2dOptions& options);
// The gradient lies in `order`, best the weight's own.
Tensor ConvTranspose2dBackwardWeight(
    const Tensor& dy, const Tensor& x, const Shape& weight_shape,
    const ConvTranspose2dOptions& options,
    MemoryFormat order = MemoryFormat::kContiguous);

}  // namespace baton::ops
