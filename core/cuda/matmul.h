// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Products of floating tensors of one dtype on a GPU. The caller has checked
// the arguments. f16 and bf16 sum in f32; f32 uses TF32 if core/precision.h
// allows it.
namespace baton::cuda {

// Like core/cpu/matmul.h.
Tensor BatchedMatmul(const Tensor& a, const Tensor& b, const Shape& batch);
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

// The library has these kernels only for some dtypes and shapes. If it has
// none, nothing is launched and the results are undefined tensors.

// Returns max(Linear(x, weight, bias), 0).
Tensor LinearRelu(const Tensor& x, const Tensor& weight, const Tensor& bias);

// Returns dy^T x and the sum of dy's rows, for x [N, I] and dy [N, O].
struct LinearGradients {
  Tensor weight;  // [O, I]
  Tensor bias;    // [O]
};
LinearGradients LinearParameterGradients(const Tensor& dy, const Tensor& x);

}  // namespace baton::cuda
