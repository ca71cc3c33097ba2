// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Products of f32 or f64 tensors on the CPU. The caller has checked the
// arguments.
namespace baton::cpu {

// Returns a [..., M, K] times b [..., K, N]; `batch` is the leading axes,
// broadcast.
Tensor BatchedMatmul(const Tensor& a, const Tensor& b, const Shape& batch);
// Returns x [..., I] times weight [O, I] transposed, plus bias if it is
// defined.
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace baton::cpu
