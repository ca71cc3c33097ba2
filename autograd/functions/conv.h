// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace baton::autograd {

// Convolves x [N, C, H, W] with weight [O, C/groups, kH, kW] and adds bias [O],
// which may be undefined.
Variable Conv2d(const Variable& x, const Variable& weight, const Variable& bias,
                const ops::Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
};

// Convolves x [N, C, L] with weight [O, C/groups, k] and adds bias [O], which
// may be undefined. It is Conv2d of images with a height of 1.
Variable Conv1d(const Variable& x, const Variable& weight, const Variable& bias,
                const Conv1dOptions& options = {});

// Computes the transposed convolution of core/ops/conv_transpose.h: x [N, C, H,
// W], weight [C, O/groups, kH, kW], bias [O] or undefined.
Variable ConvTranspose2d(const Variable& x, const Variable& weight,
                         const Variable& bias,
                         const ops::ConvTranspose2dOptions& options = {});

}  // namespace baton::autograd
