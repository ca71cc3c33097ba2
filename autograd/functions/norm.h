// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "autograd/variable.h"
#include "core/ops/norm.h"

namespace baton::autograd {

// Per-channel normalisation of x [N, C, ...]: y = bn(x) * gamma + beta, then
// plus `residual` where defined, then ReLU where options say so, in one kernel.
// Train uses the batch's statistics and updates the running ones in place where
// they are defined; Eval uses the running ones.
Variable BatchNormTrain(const Variable& x, const Variable& gamma,
                        const Variable& beta, const Variable& residual,
                        const Tensor& running_mean,
                        const Tensor& running_variance,
                        const ops::BatchNormOptions& options = {},
                        const Tensor& batches = Tensor());
Variable BatchNormEval(const Variable& x, const Variable& gamma,
                       const Variable& beta, const Variable& residual,
                       const Tensor& running_mean,
                       const Tensor& running_variance,
                       const ops::BatchNormOptions& options = {});

// Those who train the same layer, each on a batch of its own; all of them call
// the same in the same order. Throws Error. Thread-compatible.
class BatchPeers {
 public:
  virtual ~BatchPeers() = default;
  virtual int members() const = 0;
  // What each has given, [members, ...], the same at all.
  virtual Tensor Gather(const Tensor& own) = 0;
  // The sum over the members, in its place.
  virtual void AddUp(const Tensor& own) = 0;
};

// Train by the statistics of the batches of all peers taken as one, which may
// be of different sizes, and empty. Gradients of x are those of the sum of the
// members' losses; those of gamma and beta are this member's part of them.
Variable BatchNormTrainTogether(const Variable& x, const Variable& gamma,
                                const Variable& beta, const Variable& residual,
                                const Tensor& running_mean,
                                const Tensor& running_variance,
                                const std::shared_ptr<BatchPeers>& peers,
                                const ops::BatchNormOptions& options = {},
                                const Tensor& batches = Tensor());

}  // namespace baton::autograd
