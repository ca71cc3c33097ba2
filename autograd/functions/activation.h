// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace baton::autograd {

Variable Relu(const Variable& x);
Variable Sigmoid(const Variable& x);
Variable Tanh(const Variable& x);
Variable Gelu(const Variable& x);  // the exact form, with erf
Variable Silu(const Variable& x);  // x * sigmoid(x)

// Returns x if x is positive, else x * slope.
Variable LeakyRelu(const Variable& x, double slope = 0.01);

// Zeroes elements with probability p and scales the rest by 1 / (1 - p).
Variable Dropout(const Variable& x, double p, Generator& generator);

}  // namespace baton::autograd
