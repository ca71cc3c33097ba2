// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

Tensor Softmax(const Tensor& x, int axis);
Tensor SoftmaxBackward(const Tensor& dy, const Tensor& y, int axis);
Tensor LogSoftmax(const Tensor& x, int axis);
Tensor LogSoftmaxBackward(const Tensor& dy, const Tensor& y, int axis);

// Mean over all labels of -log softmax(logits)[label].
struct CrossEntropyResult {
  Tensor loss;         // []
  Tensor log_softmax;  // of the logits' shape
};
// logits [..., C] floating, labels [...] i64 in [0, C). A label out of range
// throws on the CPU. On a GPU, where to look would be to wait, it makes the
// loss NaN, and the gradient of its row.
CrossEntropyResult CrossEntropy(const Tensor& logits, const Tensor& labels);
// dy is the scalar gradient of the loss.
Tensor CrossEntropyBackward(const Tensor& dy, const Tensor& log_softmax,
                            const Tensor& labels);

// Mean of (x - target)^2 over all elements.
Tensor MseLoss(const Tensor& x, const Tensor& target);
Tensor MseLossBackward(const Tensor& dy, const Tensor& x, const Tensor& target);

}  // namespace baton::ops
