// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Multiplies [..., M, K] by [..., K, N] into [..., M, N]. Leading axes
// broadcast, and transposed views are not copied. Vectors are not promoted: use
// Unsqueeze.
Tensor Matmul(const Tensor& a, const Tensor& b);

// Returns x [..., I] times weight [O, I] transposed, plus bias [O] if it is
// defined.
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
// Throws Error, led by `op`, unless the arguments are as Linear requires.
void RequireLinear(const char* op, const Tensor& x, const Tensor& weight,
                   const Tensor& bias);

}  // namespace baton::ops
