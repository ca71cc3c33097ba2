// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "autograd/variable.h"
#include "core/ops/norm.h"

namespace baton::autograd {

// Normalizes x [N, C, ...] per channel: y = bn(x) * gamma + beta, then adds
// `residual` if defined, then applies ReLU if options say so, in one kernel.
// Train uses the batch's statistics and updates the running ones in place if
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

// The peers that train the same layer, each on a batch of its own. All of them
// must make the same calls in the same order. Throws Error. Thread-compatible.
class BatchPeers {
 public:
  virtual ~BatchPeers() = default;
  virtual int members() const = 0;
  // Returns the tensors of all members, [members, ...], equal at all of them.
  virtual Tensor Gather(const Tensor& own) = 0;
  // Replaces `own` by its sum over all members.
  virtual void AddUp(const Tensor& own) = 0;
};

// Like BatchNormTrain, with the statistics of all peers' batches taken as one.
// The batches may differ in size, and may be empty. The gradient of x is that
// of the sum of all members' losses; the gradients of gamma and beta are this
// member's part of it.
Variable BatchNormTrainTogether(const Variable& x, const Variable& gamma,
                                const Variable& beta, const Variable& residual,
                                const Tensor& running_mean,
                                const Tensor& running_variance,
                                const std::shared_ptr<BatchPeers>& peers,
                                const ops::BatchNormOptions& options = {},
                                const Tensor& batches = Tensor());

}  // namespace baton::autograd
