// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// [..., M, K] x [..., K, N] -> [..., M, N]; leading axes broadcast; transposed
// views cost no copy. Vectors are not promoted: use Unsqueeze.
Tensor Matmul(const Tensor& a, const Tensor& b);

// x [..., I] times weight [O, I] transposed, plus bias [O] where defined.
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
// What Linear requires of its arguments; throws Error led by `op`.
void RequireLinear(const char* op, const Tensor& x, const Tensor& weight,
                   const Tensor& bias);

}  // namespace baton::ops
