// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/norm.h"

// These are the functions of core/ops/norm.h for the CPU, called after the op
// has checked the arguments. Per-channel arithmetic is done in double.
namespace baton::cpu {

ops::BatchNormResult BatchNormTrain(const Tensor& x, const Tensor& gamma,
                                    const Tensor& beta, const Tensor& residual,
                                    const Tensor& running_mean,
                                    const Tensor& running_variance,
                                    const ops::BatchNormOptions& options,
                                    const Tensor& batches);
Tensor BatchMoments(const Tensor& x);
Tensor JoinMoments(const Tensor& batches);
void UpdateRunningStatistics(const std::vector<ops::RunningUpdate>& updates);
Tensor BatchNormEval(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual, const Tensor& running_mean,
                     const Tensor& running_variance,
                     const ops::BatchNormOptions& options);

ops::BatchNormGradients BatchNormBackward(const Tensor& dy, const Tensor& x,
                                          const Tensor& gamma,
                                          const ops::BatchNormResult& forward,
                                          bool has_residual,
                                          const ops::BatchNormOptions& options);
ops::BatchNormGradients BatchNormEvalBackward(
    const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& gamma,
    const Tensor& running_mean, const Tensor& running_variance,
    bool has_residual, const ops::BatchNormOptions& options);

}  // namespace baton::cpu
