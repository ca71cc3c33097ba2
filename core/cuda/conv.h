// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/conv.h"
#include "core/tensor.h"

// Convolutions through cuDNN, for f32, f64, f16 and bf16; sums are in f32, or
// f64 for f64. Arguments are checked and on one GPU; batches are not empty. f32
// is rounded to TF32 where core/precision.h allows it. The layout is the
// operands' own when they are dense in one: channels-last is the fast one. What
// lies otherwise is copied first. A first layer's three channels are not padded
// here: cuDNN's engines for tensor cores do that in their workspace.
namespace baton::cuda {

Tensor ConvForward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ops::Conv2dOptions& options);
Tensor ConvBackwardInput(const Tensor& dy, const Tensor& weight,
                         const Shape& x_shape,
                         const ops::Conv2dOptions& options);
// Adds the gradient to `dx`, which is dense in one of the two layouts.
void ConvAddBackwardInput(const Tensor& dy, const Tensor& weight,
                          const ops::Conv2dOptions& options, const Tensor& dx);
Tensor ConvBackwardWeight(const Tensor& dy, const Tensor& x,
                          const Shape& weight_shape,
                          const ops::Conv2dOptions& options,
                          MemoryFormat order);

}  // namespace baton::cuda
