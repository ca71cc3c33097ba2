// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/conv.h"
#include "core/tensor.h"

// CPU convolutions. Arguments are checked and on the CPU; batches are not
// empty. Gradients of weights lie in `order`.
namespace baton::cpu {

// f32: oneDNN (conv_onednn.cc).
Tensor ConvForwardF32(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ops::Conv2dOptions& options);
Tensor ConvBackwardInputF32(const Tensor& dy, const Tensor& weight,
                            const Shape& x_shape,
                            const ops::Conv2dOptions& options);
Tensor ConvBackwardWeightF32(const Tensor& dy, const Tensor& x,
                             const Shape& weight_shape,
                             const ops::Conv2dOptions& options,
                             MemoryFormat order);

// f64: columns and OpenBLAS (conv_columns.cc), for references and gradient
// checks.
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
