// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/loss_args.h"

// PyTorch's losses, with its defaults. They are differentiable in targets too,
// where these are no labels. A mean over no elements is NaN. Of CrossEntropy
// and MseLoss the mean, without a target of probabilities, is computed in one
// pass.
namespace baton::autograd {

// Element by element; x and target broadcast, but for MseLoss, whose shapes are
// equal. With a beta of 0 SmoothL1Loss is L1Loss.
Variable L1Loss(const Variable& x, const Variable& target,
                Reduction reduction = Reduction::kMean);
Variable MseLoss(const Variable& x, const Variable& target,
                 Reduction reduction = Reduction::kMean);
Variable SmoothL1Loss(const Variable& x, const Variable& target,
                      double beta = 1, Reduction reduction = Reduction::kMean);
Variable HuberLoss(const Variable& x, const Variable& target, double delta = 1,
                   Reduction reduction = Reduction::kMean);

// Of weights that broadcast to x; undefined ones are 1. A mean is that of all
// elements, whatever their weights.
struct BinaryLossOptions {
  Tensor weight = {};
  Tensor pos_weight = {};  // of targets, in BceWithLogitsLoss
  Reduction reduction = Reduction::kMean;
};
// Cross entropy of probabilities x, in [0, 1], or of logits, with targets in
// [0, 1] and of x's shape.
Variable BceLoss(const Variable& x, const Variable& target,
                 const BinaryLossOptions& options = {});
Variable BceWithLogitsLoss(const Variable& x, const Variable& target,
                           const BinaryLossOptions& options = {});

// target * (log(target) - x), where x is the logarithm of probabilities, and
// target too if `log_target`. A mean is that of all elements, as in PyTorch;
// the divergence of a batch is kBatchMean.
Variable KlDivLoss(const Variable& x, const Variable& target,
                   bool log_target = false,
                   Reduction reduction = Reduction::kMean);

// -x[label] of logarithms of probabilities, classes along `class_axis` of x and
// labels, i64, along the others. Labels out of range: as in CrossEntropy.
Variable NllLoss(const Variable& x, const Tensor& labels,
                 const ClassLossOptions& options = {}, int class_axis = -1);

// The same of log softmax(logits). Targets may also be probabilities of the
// classes, floating and of the logits' shape; these know no label to ignore,
// and their mean is that over rows. A label out of range throws on the CPU; on
// a GPU, where to look would be to wait, it gives NaN.
Variable CrossEntropy(const Variable& logits, const Variable& targets,
                      const ClassLossOptions& options = {},
                      int class_axis = -1);

}  // namespace baton::autograd
