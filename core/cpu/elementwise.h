// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Element-wise kernels. All tensors of a call have one shape (inputs may be
// expanded views) and, unless said otherwise, one dtype; `out` may be an
// input.
namespace baton::cpu {

// Integers wrap, and bool adds as "or" and multiplies as "and". Throws Error
// where an integer is divided by zero. kPow takes floating dtypes alone.
void Binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b);

// `out` is bool and gets (a op b) != negate. Floats that do not compare, as
// NaN, give false before the negation.
void Compare(CompareOp op, bool negate, const Tensor& out, const Tensor& a,
             const Tensor& b);

void Unary(UnaryOp op, const Tensor& out, const Tensor& x);

// x * scale + shift; scale and shift are rounded to the compute type first.
void Affine(const Tensor& out, const Tensor& x, double scale, double shift);
// target + alpha * source.
void AddScaled(const Tensor& out, const Tensor& target, const Tensor& source,
               double alpha);
void Pow(const Tensor& out, const Tensor& x, double exponent);
void Clamp(const Tensor& out, const Tensor& x, double low, double high);
// `condition` is bool.
void Where(const Tensor& out, const Tensor& condition, const Tensor& a,
           const Tensor& b);
// `value` where `mask`, which is bool, holds, else x.
void MaskedFill(const Tensor& out, const Tensor& x, const Tensor& mask,
                double value);

}  // namespace baton::cpu
