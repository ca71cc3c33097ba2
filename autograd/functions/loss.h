// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/loss_args.h"

// PyTorch's losses, with its defaults. They are differentiable in the targets
// too, unless these are labels. A mean over no elements is NaN. The mean of
// MseLoss, and of CrossEntropy with labels, is computed in one pass.
namespace baton::autograd {

// Element-wise losses. x and target broadcast, except in MseLoss, which needs
// equal shapes. SmoothL1Loss with a beta of 0 is L1Loss.
Variable L1Loss(const Variable& x, const Variable& target,
                Reduction reduction = Reduction::kMean);
Variable MseLoss(const Variable& x, const Variable& target,
                 Reduction reduction = Reduction::kMean);
Variable SmoothL1Loss(const Variable& x, const Variable& target,
                      double beta = 1, Reduction reduction = Reduction::kMean);
Variable HuberLoss(const Variable& x, const Variable& target, double delta = 1,
                   Reduction reduction = Reduction::kMean);

// Weights broadcast to x; undefined ones are 1. A mean is over all elements,
// whatever their weights.
struct BinaryLossOptions {
  Tensor weight = {};
  Tensor pos_weight = {};  // for BceWithLogitsLoss
  Reduction reduction = Reduction::kMean;
};
// Binary cross entropy of probabilities x, in [0, 1], or of logits x. Targets
// are in [0, 1] and have x's shape.
Variable BceLoss(const Variable& x, const Variable& target,
                 const BinaryLossOptions& options = {});
Variable BceWithLogitsLoss(const Variable& x, const Variable& target,
                           const BinaryLossOptions& options = {});

// Computes target * (log(target) - x), where x is the logarithm of
// probabilities, and target too if `log_target`. kMean is the mean over all
// elements, as in PyTorch; use kBatchMean for the mean divergence of a batch's
// rows.
Variable KlDivLoss(const Variable& x, const Variable& target,
                   bool log_target = false,
                   Reduction reduction = Reduction::kMean);

// Computes -x[label] for log-probabilities x with classes along `class_axis`;
// labels are i64 and have x's other axes. Labels out of range are handled as in
// CrossEntropy.
Variable NllLoss(const Variable& x, const Tensor& labels,
                 const ClassLossOptions& options = {}, int class_axis = -1);

// Computes the same for x = log softmax(logits). Targets may also be class
// probabilities, floating and of the logits' shape; then no label is ignored,
// and a mean is over the rows. A label out of range throws Error on the CPU; on
// a GPU, where a check would have to wait, the result is NaN.
Variable CrossEntropy(const Variable& logits, const Variable& targets,
                      const ClassLossOptions& options = {},
                      int class_axis = -1);

}  // namespace baton::autograd
