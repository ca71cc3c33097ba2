// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/conv.h"
#include "core/tensor.h"

// CPU convolutions. The caller has checked the arguments; all tensors are on
// the CPU and batches are not empty. Gradients of weights have the memory order
// `order`.
namespace baton::cpu {

// These run on oneDNN (conv_onednn.cc).
Tensor ConvForwardF32(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ops::Conv2dOptions& options);
Tensor ConvBackwardInputF32(const Tensor& dy, const Tensor& weight,
                            const Shape& x_shape,
                            const ops::Conv2dOptions& options);
Tensor ConvBackwardWeightF32(const Tensor& dy, const Tensor& x,
                             const Shape& weight_shape,
                             const ops::Conv2dOptions& options,
                             MemoryFormat order);

// These unfold x into columns and multiply with OpenBLAS (conv_columns.cc).
// They are for reference values and gradient checks.
Tensor ConvForwardF64(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ops::Conv2dOptions& options);
Tensor ConvBackwardInputF64(const Tensor& dy, const Tensor& weight,
                            const Shape& x_shape,
                            const ops::Conv2dOptions& options);
Tensor ConvBackwardWeightF64(const Tensor& dy, const Tensor& x,
                             const Shape& weight_shape,
                             const ops::Conv2dOptions& options,
                             MemoryFormat order);

}  // namespace baton::cpu
