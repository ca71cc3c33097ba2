// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/conv.h"

namespace baton::autograd {

// x [N, C, H, W], weight [O, C/groups, kH, kW], bias [O] or undefined.
Variable Conv2d(const Variable& x, const Variable& weight, const Variable& bias,
                const ops::Conv2dOptions& options = {});

}  // namespace baton::autograd
