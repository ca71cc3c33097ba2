// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/loss_args.h"
#include "core/tensor.h"

namespace baton::ops {

struct CrossEntropyResult {
  Tensor loss;         // [], or the labels' shape where nothing is reduced
  Tensor log_softmax;  // of the logits' shape
  Tensor divisor;      // [], f64 or f32: of a mean; else undefined
};
// -log softmax(logits)[label]; logits [..., C] floating, labels [...] i64, in
// [0, C) or ignored. Another label throws on the CPU. On a GPU, where to look
// would be to wait, it makes the loss NaN, and the gradient of its row.
CrossEntropyResult CrossEntropy(const Tensor& logits, const Tensor& labels,
                                const ClassLossOptions& options = {});
// `dy` is the gradient of the loss; `options` those of the forward.
Tensor CrossEntropyBackward(const Tensor& dy, const Tensor& log_softmax,
                            const Tensor& labels, const Tensor& divisor,
                            const ClassLossOptions& options = {});

// What CrossEntropy requires of `classes` [..., C], labels and options.
void RequireClasses(const char* op, const Tensor& classes, const Tensor& labels,
                    const ClassLossOptions& options);

// Mean of (x - target)^2 over all elements.
Tensor MseLoss(const Tensor& x, const Tensor& target);
Tensor MseLossBackward(const Tensor& dy, const Tensor& x, const Tensor& target);

// Element by element; x and target are floating, of one dtype, and broadcast. A
// probability outside [0, 1] in kBinary throws on the CPU and gives NaN on a
// GPU. `op` leads error texts.
Tensor ComputePointLoss(const char* op, PointLoss loss, LossPart part,
                        const Tensor& x, const Tensor& target,
                        double parameter = 0);

}  // namespace baton::ops
