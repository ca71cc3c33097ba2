// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Products of f32 or f64 tensors on the CPU, checked before.
namespace baton::cpu {

// a [..., M, K] x b [..., K, N] over the broadcast leading axes `batch`.
Tensor BatchedMatmul(const Tensor& a, const Tensor& b, const Shape& batch);
// x [..., I] times weight [O, I] transposed, plus bias where defined.
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace baton::cpu
