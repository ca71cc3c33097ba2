// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

namespace baton::autograd {

// Mean over all labels of -log softmax(logits)[label]; logits [..., C], labels
// [...] i64 in [0, C). Shape [].
Variable CrossEntropy(const Variable& logits, const Tensor& labels);

// Mean of (x - target)^2 over all elements, shape []; differentiable in both.
Variable MseLoss(const Variable& x, const Variable& target);

}  // namespace baton::autograd
