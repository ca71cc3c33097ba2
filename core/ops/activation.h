// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/random.h"
#include "core/tensor.h"

namespace baton::ops {

// f(x) and its gradient; `y` is the forward's result, `x` its input.
Tensor Relu(const Tensor& x);
Tensor ReluBackward(const Tensor& dy, const Tensor& y);
Tensor Sigmoid(const Tensor& x);
Tensor SigmoidBackward(const Tensor& dy, const Tensor& y);
Tensor Tanh(const Tensor& x);
Tensor TanhBackward(const Tensor& dy, const Tensor& y);
// The exact form, with erf.
Tensor Gelu(const Tensor& x);
Tensor GeluBackward(const Tensor& dy, const Tensor& x);
Tensor Silu(const Tensor& x);  // x * sigmoid(x)
Tensor SiluBackward(const Tensor& dy, const Tensor& x);

// x where it is positive, else x * slope, as where it is NaN.
Tensor LeakyRelu(const Tensor& x, double slope);
Tensor LeakyReluBackward(const Tensor& dy, const Tensor& x, double slope);

// The same by name, but for the last. `saved` is x where SavesInput, else the
// forward's result.
Tensor Activate(Activation function, const Tensor& x);
Tensor ActivateBackward(Activation function, const Tensor& dy,
                        const Tensor& saved);
bool SavesInput(Activation function);

// Zeroes elements with probability p and scales the rest by 1 / (1 - p).
struct DropoutResult {
  Tensor y;
  Tensor mask;  // bool, true where kept
};
DropoutResult Dropout(const Tensor& x, double p, Generator& generator);
Tensor DropoutBackward(const Tensor& dy, const Tensor& mask, double p);

}  // namespace baton::ops
