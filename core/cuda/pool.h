// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/ops/pool.h"
#include "core/tensor.h"

// Pooling of f32, f64, f16 or bf16 on a GPU. The caller has checked the
// arguments. Results have the memory order of the forward's x, or `format`.
// Gradients are gathered, without atomics: equal calls give equal bits.
namespace baton::cuda {

// `workspace` is shaped like y: the position of each maximum in its window, as
// u8, or as i32 for windows of more than 256 elements.
ops::MaxPool2dResult MaxPool(const Tensor& x, const Shape& y_shape,
                             const ops::Pool2dOptions& options);
Tensor MaxPoolBackward(const Tensor& dy, const Tensor& workspace,
                       const Shape& x_shape, const ops::Pool2dOptions& options);

Tensor MeanPool(const Tensor& x, const Windows& windows);
Tensor MeanPoolBackward(const Tensor& dy, const Shape& x_shape,
                        const Windows& windows, MemoryFormat format);

}  // namespace baton::cuda
