// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace baton::autograd {

// x [N, C, H, W], weight [O, C/groups, kH, kW], bias [O] or undefined.
Variable Conv2d(const Variable& x, const Variable& weight, const Variable& bias,
                const ops::Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
};

// x [N, C, L], weight [O, C/groups, k], bias [O] or undefined: it is Conv2d of
// images with a height of 1.
Variable Conv1d(const Variable& x, const Variable& weight, const Variable& bias,
                const Conv1dOptions& options = {});

// x [N, C, H, W], weight [C, O/groups, kH, kW], bias [O] or undefined; see
// core/ops/conv_transpose.h.
Variable ConvTranspose2d(const Variable& x, const Variable& weight,
                         const Variable& bias,
                         const ops::ConvTranspose2dOptions& options = {});

}  // namespace baton::autograd
