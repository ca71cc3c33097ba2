// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/loss_args.h"
#include "core/tensor.h"

namespace baton::ops {

struct CrossEntropyResult {
  Tensor loss;         // [], or the labels' shape with Reduction::kNone
  Tensor log_softmax;  // of the logits' shape
  Tensor divisor;      // [], f64 or f32: that of kMean; else undefined
};
// Computes -log softmax(logits)[label] for floating logits [..., C] and labels
// [...], which are i64 and in [0, C) or ignored. On the CPU another label
// throws Error. On a GPU a check would have to wait for the GPU, so such a
// label makes the loss, and the gradient of its row, NaN.
CrossEntropyResult CrossEntropy(const Tensor& logits, const Tensor& labels,
                                const ClassLossOptions& options = {});
// Returns the gradient of the logits. `dy` is the gradient of the loss;
// `options` are those of the forward.
Tensor CrossEntropyBackward(const Tensor& dy, const Tensor& log_softmax,
                            const Tensor& labels, const Tensor& divisor,
                            const ClassLossOptions& options = {});

// Throws Error, led by `op`, unless `classes` [..., C], labels and options are
// as CrossEntropy requires.
void RequireClasses(const char* op, const Tensor& classes, const Tensor& labels,
                    const ClassLossOptions& options);

// Returns the mean of (x - target)^2 over all elements.
Tensor MseLoss(const Tensor& x, const Tensor& target);
Tensor MseLossBackward(const Tensor& dy, const Tensor& x, const Tensor& target);

// Computes the loss or a derivative of each element. x and target are floating,
// of one dtype, and broadcast. For kBinary a probability outside [0, 1] throws
// Error on the CPU and gives NaN on a GPU. Error texts begin with `op`.
Tensor ComputePointLoss(const char* op, PointLoss loss, LossPart part,
                        const Tensor& x, const Tensor& target,
                        double parameter = 0);

}  // namespace baton::ops
