// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

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

}  // namespace baton::autograd
