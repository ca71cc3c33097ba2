// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// All tensors of a call have one shape and one floating dtype.
namespace baton::cpu {

void Activate(Activation function, const Tensor& out, const Tensor& x);
// `saved` is the input or the output of the forward: see ops::SavesInput.
void ActivateBackward(Activation function, const Tensor& dx, const Tensor& dy,
                      const Tensor& saved);
void LeakyRelu(const Tensor& out, const Tensor& x, double slope);
void LeakyReluBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       double slope);

// Writes mask ? x * scale : 0; `mask` is bool.
void MaskAndScale(const Tensor& out, const Tensor& x, const Tensor& mask,
                  double scale);

}  // namespace baton::cpu
