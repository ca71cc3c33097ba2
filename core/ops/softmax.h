// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Softmax, or its logarithm, along `axis`, and the gradient of x from the
// result y. Tensors are floating; f16 and bf16 are computed in f32. Results
// have the memory order of x or y.
Tensor Softmax(const Tensor& x, int axis);
Tensor SoftmaxBackward(const Tensor& dy, const Tensor& y, int axis);
Tensor LogSoftmax(const Tensor& x, int axis);
Tensor LogSoftmaxBackward(const Tensor& dy, const Tensor& y, int axis);

}  // namespace baton::ops
