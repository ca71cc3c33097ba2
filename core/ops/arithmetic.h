// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Element-wise ops. Binary ones broadcast; both sides must have the same dtype
// and device. Results are new tensors in the memory order of the first input.
// Integers wrap; one divided by zero throws Error on the CPU and gives 0 on a
// GPU.
namespace baton::ops {

Tensor Add(const Tensor& a, const Tensor& b);
Tensor Sub(const Tensor& a, const Tensor& b);
Tensor Mul(const Tensor& a, const Tensor& b);
Tensor Div(const Tensor& a, const Tensor& b);
Tensor Maximum(const Tensor& a, const Tensor& b);
Tensor Minimum(const Tensor& a, const Tensor& b);
// a to the power of b; floating.
Tensor Pow(const Tensor& a, const Tensor& b);
Tensor AddScalar(const Tensor& a, double b);
Tensor MulScalar(const Tensor& a, double b);

Tensor Neg(const Tensor& x);
Tensor Abs(const Tensor& x);
Tensor Exp(const Tensor& x);
Tensor Log(const Tensor& x);
Tensor Sqrt(const Tensor& x);
Tensor Sin(const Tensor& x);
Tensor Cos(const Tensor& x);
// The square root and its inverse for 1/2 and -1/2.
Tensor PowScalar(const Tensor& x, double exponent);
Tensor Clamp(const Tensor& x, double low, double high);

// Comparisons give bool.
Tensor Equal(const Tensor& a, const Tensor& b);
Tensor NotEqual(const Tensor& a, const Tensor& b);
Tensor Less(const Tensor& a, const Tensor& b);
Tensor LessEqual(const Tensor& a, const Tensor& b);
Tensor Greater(const Tensor& a, const Tensor& b);
Tensor GreaterEqual(const Tensor& a, const Tensor& b);
// `a` where the bool condition holds, else `b`; all three broadcast.
Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b);
// `value` where the bool mask holds, else x; both broadcast.
Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value);

// In place; each counts a version of `target`. `source` broadcasts to it.
void AddInto(const Tensor& target, const Tensor& source, double alpha = 1.0);
void MulInto(const Tensor& target, const Tensor& source);
void ScaleInto(const Tensor& target, double factor);

// True when shape and dtype are equal and elements differ by at most
// atol + rtol * |b|. These two copy from a GPU and wait for it.
bool AllClose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
              double atol = 1e-8);
// True when shape, dtype and every bit of every element are equal.
bool BitEqual(const Tensor& a, const Tensor& b);

}  // namespace baton::ops
