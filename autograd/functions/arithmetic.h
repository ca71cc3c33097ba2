// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

// Differentiable versions of the ops in core/ops/arithmetic.h, with the same
// names, shapes and errors. Binary ones broadcast.
namespace baton::autograd {

Variable Add(const Variable& a, const Variable& b);
Variable Sub(const Variable& a, const Variable& b);
Variable Mul(const Variable& a, const Variable& b);
Variable Div(const Variable& a, const Variable& b);
// If both elements are equal, each gets half of the gradient; if one is NaN,
// each gets all of it.
Variable Maximum(const Variable& a, const Variable& b);
Variable Minimum(const Variable& a, const Variable& b);
// As in PyTorch: a base gets no gradient if its exponent is 0, and a
// non-negative exponent gets none if its base is 0.
Variable Pow(const Variable& a, const Variable& b);
Variable AddScalar(const Variable& a, double b);
Variable MulScalar(const Variable& a, double b);

Variable Neg(const Variable& x);
Variable Abs(const Variable& x);  // gradient 0 at 0
Variable Exp(const Variable& x);
Variable Log(const Variable& x);
Variable Sqrt(const Variable& x);
Variable Sin(const Variable& x);
Variable Cos(const Variable& x);
Variable PowScalar(const Variable& x, double exponent);
Variable Clamp(const Variable& x, double low, double high);
// `condition` is bool.
Variable Where(const Tensor& condition, const Variable& a, const Variable& b);
// `mask` is bool.
Variable MaskedFill(const Variable& x, const Tensor& mask, double value);

}  // namespace baton::autograd

namespace baton {

Variable operator+(const Variable& a, const Variable& b);
Variable operator-(const Variable& a, const Variable& b);
Variable operator*(const Variable& a, const Variable& b);
Variable operator/(const Variable& a, const Variable& b);
Variable operator-(const Variable& x);
Variable operator+(const Variable& a, double b);
Variable operator-(const Variable& a, double b);
Variable operator*(const Variable& a, double b);
Variable operator/(const Variable& a, double b);
Variable operator+(double a, const Variable& b);
Variable operator-(double a, const Variable& b);
Variable operator*(double a, const Variable& b);

}  // namespace baton
