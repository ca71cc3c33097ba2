// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/kernel_args.h"

namespace baton::autograd {

// Multiplies [..., M, K] by [..., K, N] into [..., M, N]; leading axes
// broadcast.
Variable Matmul(const Variable& a, const Variable& b);

// Returns x [..., I] times weight [O, I] transposed, plus bias [O] if it is
// defined.
Variable Linear(const Variable& x, const Variable& weight,
                const Variable& bias = Variable());

// Returns activation(Linear(x, weight, bias)). On a GPU it takes fewer kernels,
// and there ReLU turns NaN into 0.
Variable LinearActivation(Activation activation, const Variable& x,
                          const Variable& weight,
                          const Variable& bias = Variable());

}  // namespace baton::autograd
