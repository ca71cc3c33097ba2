// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

Tensor Softmax(const Tensor& x, int axis);
Tensor SoftmaxBackward(const Tensor& dy, const Tensor& y, int axis);
Tensor LogSoftmax(const Tensor& x, int axis);
Tensor LogSoftmaxBackward(const Tensor& dy, const Tensor& y, int axis);

}  // namespace baton::ops
