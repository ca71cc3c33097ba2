// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// These are the kernels of core/cpu/activation.h, for tensors of one GPU.
namespace baton::cuda {

void Activate(Activation function, const Tensor& out, const Tensor& x);
void ActivateBackward(Activation function, const Tensor& dx, const Tensor& dy,
                      const Tensor& saved);
void LeakyRelu(const Tensor& out, const Tensor& x, double slope);
void LeakyReluBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       double slope);
void MaskAndScale(const Tensor& out, const Tensor& x, const Tensor& mask,
                  double scale);

}  // namespace baton::cuda
