// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// These ops fuse a linear layer, x [..., I] times weight [O, I] transposed,
// with what precedes or follows it.
namespace baton::ops {

// Returns y = activation(Linear(x, weight, bias)); bias is [O] or undefined.
// For kRelu a GPU runs one kernel, whose maximum with 0 turns NaN into 0.
struct LinearActivationResult {
  Tensor y;
  Tensor saved;  // for the backward: see SavesInput
};
LinearActivationResult LinearActivation(Activation activation, const Tensor& x,
                                        const Tensor& weight,
                                        const Tensor& bias);
// Returns the gradient of the activation's input.
Tensor LinearActivationBackward(Activation activation, const Tensor& dy,
                                const Tensor& saved);

// Returns the gradients of weight and bias for x [N, I] and dy [N, O]; a GPU
// computes both in one kernel if its library has one.
struct LinearGradients {
  Tensor weight;  // dy^T x, [O, I]
  Tensor bias;    // dy summed over N, [O]
};
LinearGradients LinearParameterGradients(const Tensor& dy, const Tensor& x);

}  // namespace baton::ops
