// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/conv.h"
#include "core/tensor.h"

// Convolutions through cuDNN, for f32, f64, f16 and bf16; sums are in f32, or
// in f64 for f64. The caller has checked the arguments; all tensors are on one
// GPU and batches are not empty. f32 is rounded to TF32 if core/precision.h
// allows it. The layout is the operands' own if all are dense in one;
// channels-last is the faster. Operands in another layout are copied first. The
// three channels of a first layer are not padded here: cuDNN's engines for
// tensor cores do that in their workspace.
namespace baton::cuda {

Tensor ConvForward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ops::Conv2dOptions& options);
Tensor ConvBackwardInput(const Tensor& dy, const Tensor& weight,
                         const Shape& x_shape,
                         const ops::Conv2dOptions& options);
// Adds the gradient to `dx`, which must be dense in one of the two layouts.
void ConvAddBackwardInput(const Tensor& dy, const Tensor& weight,
                          const ops::Conv2dOptions& options, const Tensor& dx);
Tensor ConvBackwardWeight(const Tensor& dy, const Tensor& x,
                          const Shape& weight_shape,
                          const ops::Conv2dOptions& options,
                          MemoryFormat order);

}  // namespace baton::cuda
