// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Element-wise ops. Binary ops broadcast, and need operands of the same dtype
// and device. Each result is a new tensor in the memory order of the first
// input that has the result's shape. Integers wrap; an integer divided by zero
// throws Error on the CPU and gives 0 on a GPU.
namespace baton::ops {

Tensor Add(const Tensor& a, const Tensor& b);
Tensor Sub(const Tensor& a, const Tensor& b);
Tensor Mul(const Tensor& a, const Tensor& b);
Tensor Div(const Tensor& a, const Tensor& b);
Tensor Maximum(const Tensor& a, const Tensor& b);
Tensor Minimum(const Tensor& a, const Tensor& b);
// Returns a to the power of b; both must be floating.
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
// Returns x to the power of `exponent`; for 1/2 and -1/2 it uses the square
// root.
Tensor PowScalar(const Tensor& x, double exponent);
Tensor Clamp(const Tensor& x, double low, double high);

// Comparisons return bool tensors.
Tensor Equal(const Tensor& a, const Tensor& b);
Tensor NotEqual(const Tensor& a, const Tensor& b);
Tensor Less(const Tensor& a, const Tensor& b);
Tensor LessEqual(const Tensor& a, const Tensor& b);
Tensor Greater(const Tensor& a, const Tensor& b);
Tensor GreaterEqual(const Tensor& a, const Tensor& b);
// Returns `a` where the bool condition is true, and `b` elsewhere; all three
// broadcast.
Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b);
// Returns `value` where the bool mask is true, and x elsewhere; both broadcast.
Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value);

// These write in place and increment the version of `target`. `source`
// broadcasts to it.
void AddInto(const Tensor& target, const Tensor& source, double alpha = 1.0);
void MulInto(const Tensor& target, const Tensor& source);
void ScaleInto(const Tensor& target, double factor);

// Returns true if shape and dtype are equal and elements differ by at most atol
// + rtol * |b|. AllClose and BitEqual copy from a GPU and wait for it.
bool AllClose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
              double atol = 1e-8);
// Returns true if shape, dtype and every bit of every element are equal.
bool BitEqual(const Tensor& a, const Tensor& b);

}  // namespace baton::ops
