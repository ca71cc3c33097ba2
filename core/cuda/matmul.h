// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Products of floating tensors of one dtype on a GPU, checked before. f16 and
// bf16 sum in f32; f32 in TF32 where core/precision.h allows it.
namespace baton::cuda {

// As in core/cpu/matmul.h.
Tensor BatchedMatmul(const Tensor& a, const Tensor& b, const Shape& batch);
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

// Kernels that the library has for some dtypes and shapes only: where it has
// none, undefined results, and nothing was launched.

// max(Linear(x, weight, bias), 0).
Tensor LinearRelu(const Tensor& x, const Tensor& weight, const Tensor& bias);

// For x [N, I] and dy [N, O]: dy^T x and the sum of dy's rows.
struct LinearGradients {
  Tensor weight;  // [O, I]
  Tensor bias;    // [O]
};
LinearGradients LinearParameterGradients(const Tensor& dy, const Tensor& x);

}  // namespace baton::cuda
