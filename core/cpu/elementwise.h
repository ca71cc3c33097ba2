// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Element-wise kernels. All tensors of a call have one shape (inputs may be
// expanded views) and, unless said otherwise, one dtype; `out` may be an
// input.
namespace baton::cpu {

// Integers wrap; bool adds as "or" and multiplies as "and". Throws Error if an
// integer is divided by zero. kPow takes only floating dtypes.
void Binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b);

// Writes (a op b) != negate to `out`, which is bool. If a or b is NaN, (a op b)
// is false.
void Compare(CompareOp op, bool negate, const Tensor& out, const Tensor& a,
             const Tensor& b);

void Unary(UnaryOp op, const Tensor& out, const Tensor& x);

// Writes x * scale + shift; scale and shift are rounded to the compute type
// first.
void Affine(const Tensor& out, const Tensor& x, double scale, double shift);
// Writes target + alpha * source.
void AddScaled(const Tensor& out, const Tensor& target, const Tensor& source,
               double alpha);
void Pow(const Tensor& out, const Tensor& x, double exponent);
void Clamp(const Tensor& out, const Tensor& x, double low, double high);
// `condition` is bool.
void Where(const Tensor& out, const Tensor& condition, const Tensor& a,
           const Tensor& b);
// Writes `value` where the bool `mask` is true, and x elsewhere.
void MaskedFill(const Tensor& out, const Tensor& x, const Tensor& mask,
                double value);

}  // namespace baton::cpu
