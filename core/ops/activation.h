// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/random.h"
#include "core/tensor.h"

namespace baton::ops {

// Activation functions and their gradients, for any floating dtype. `x` is the
// input of the forward and `y` its result.
Tensor Relu(const Tensor& x);
Tensor ReluBackward(const Tensor& dy, const Tensor& y);
Tensor Sigmoid(const Tensor& x);
Tensor SigmoidBackward(const Tensor& dy, const Tensor& y);
Tensor Tanh(const Tensor& x);
Tensor TanhBackward(const Tensor& dy, const Tensor& y);
// Computes the exact form, with erf, not the approximation by tanh.
Tensor Gelu(const Tensor& x);
Tensor GeluBackward(const Tensor& dy, const Tensor& x);
Tensor Silu(const Tensor& x);  // x * sigmoid(x)
Tensor SiluBackward(const Tensor& dy, const Tensor& x);

// Returns x where it is positive, and x * slope elsewhere, also where it is
// NaN.
Tensor LeakyRelu(const Tensor& x, double slope);
Tensor LeakyReluBackward(const Tensor& dy, const Tensor& x, double slope);

// These compute the function that `function` names, and its gradient. `saved`
// is the input x if SavesInput(function), otherwise the forward's result.
Tensor Activate(Activation function, const Tensor& x);
Tensor ActivateBackward(Activation function, const Tensor& dy,
                        const Tensor& saved);
bool SavesInput(Activation function);

// Dropout zeroes each element with probability p and scales the others by 1 /
// (1 - p).
struct DropoutResult {
  Tensor y;
  Tensor mask;  // bool; true where x was kept
};
DropoutResult Dropout(const Tensor& x, double p, Generator& generator);
Tensor DropoutBackward(const Tensor& dy, const Tensor& mask, double p);

}  // namespace baton::ops
