// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// What is fused around the product x [..., I] times weight [O, I] transposed.
namespace baton::ops {

// y = activation(Linear(x, weight, bias)), one kernel for kRelu on a GPU, whose
// maximum with 0 turns NaN into 0. bias [O] where defined.
struct LinearActivationResult {
  Tensor y;
  Tensor saved;  // what the gradient wants: see SavesInput
};
LinearActivationResult LinearActivation(Activation activation, const Tensor& x,
                                        const Tensor& weight,
                                        const Tensor& bias);
// The gradient of the activation's argument.
Tensor LinearActivationBackward(Activation activation, const Tensor& dy,
                                const Tensor& saved);

// The gradients of weight and bias for x [N, I] and dy [N, O], one kernel where
// a GPU's library has such.
struct LinearGradients {
  Tensor weight;  // dy^T x, [O, I]
  Tensor bias;    // dy summed over N, [O]
};
LinearGradients LinearParameterGradients(const Tensor& dy, const Tensor& x);

}  // namespace baton::ops
