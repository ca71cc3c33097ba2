// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

namespace baton::nn {

// Mean over all labels of -log softmax(logits)[label], shape []. Images have
// logits [N, C] and labels [N], texts [N, T, C] and [N, T]; labels are i64 in
// [0, C).
Variable CrossEntropy(const Variable& logits, const Tensor& labels);

// Mean of (x - target)^2 over all elements, shape [].
Variable MseLoss(const Variable& x, const Variable& target);

// How many rows of logits [N, C] have their maximum at the label.
int64_t CountCorrect(const Tensor& logits, const Tensor& labels);

}  // namespace baton::nn
