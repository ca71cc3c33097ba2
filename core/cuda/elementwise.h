// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// These are the kernels of core/cpu/elementwise.h, for tensors of one GPU.
// There is one difference: an integer divided by zero gives 0, because a kernel
// cannot throw.
namespace baton::cuda {

void Binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b);
void Compare(CompareOp op, bool negate, const Tensor& out, const Tensor& a,
             const Tensor& b);
void Unary(UnaryOp op, const Tensor& out, const Tensor& x);
void Affine(const Tensor& out, const Tensor& x, double scale, double shift);
void AddScaled(const Tensor& out, const Tensor& target, const Tensor& source,
               double alpha);
void Pow(const Tensor& out, const Tensor& x, double exponent);
void Clamp(const Tensor& out, const Tensor& x, double low, double high);
void Where(const Tensor& out, const Tensor& condition, const Tensor& a,
           const Tensor& b);
void MaskedFill(const Tensor& out, const Tensor& x, const Tensor& mask,
                double value);

}  // namespace baton::cuda
