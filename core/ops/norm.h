// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

namespace baton::ops {

struct BatchNormOptions {
  double eps = 1e-5;
  // The momentum of the running statistics: new = old + momentum * (batch -
  // old).
  double momentum = 0.1;
  bool relu = false;  // y = relu(bn(x) + residual), fused
};

struct BatchNormResult {
  Tensor y;
  Tensor mean;            // [C] f32 (f64 for f64), of the batch
  Tensor inverse_stddev;  // [C]
  // [C]: y = x * scale + shift. With a ReLU and no residual the backward
  // computes its mask from them and does not read y.
  Tensor scale;
  Tensor shift;
};

// Normalises each channel of x [N, C, ...] by the statistics of the batch.
// Updates the running mean and (unbiased) variance in place and adds one to
// `batches`, i64 [], where these are defined. With momentum 1 the former
// running statistics do not count, even if they are NaN. `residual`, if
// defined, has x's shape and is added before the ReLU. Undefined gamma and beta
// mean ones and zeros. The order of summation depends only on shape and memory
// order, so results are equal for any number of threads.
BatchNormResult BatchNormTrain(const Tensor& x, const Tensor& gamma,
                               const Tensor& beta, const Tensor& residual,
                               const Tensor& running_mean,
                               const Tensor& running_variance,
                               const BatchNormOptions& options,
                               const Tensor& batches = Tensor());

// Returns, for each channel of a batch x [N, C, ...], the number of values,
// their mean and their biased variance: [3, C] in f32 (f64 for f64), zeros for
// an empty batch.
Tensor BatchMoments(const Tensor& x);
// Combines the moments of several batches, [batches, 3, C], into those of all
// values: [4, C] with the mean, the unbiased variance, the biased variance and
// the count.
Tensor JoinMoments(const Tensor& batches);

// Running statistics [C], f32 or, on the CPU, f64, and the batches that have
// not been applied to them yet.
struct RunningUpdate {
  Tensor mean, variance;
  Tensor count = {};            // i64 []; may be undefined
  std::vector<Tensor> batches;  // [2, C] each: mean and unbiased variance
  double momentum = 0.1;
};
// Applies the batches to the running statistics, in order, as BatchNormTrain
// would have. A GPU takes one launch for all updates and every eight batches.
// For micro-batches that are normalised concurrently: updates of the running
// statistics within BatchNormTrain would order them.
void UpdateRunningStatistics(const std::vector<RunningUpdate>& updates);

// Normalises each channel by the running statistics.
Tensor BatchNormEval(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual, const Tensor& running_mean,
                     const Tensor& running_variance,
                     const BatchNormOptions& options);

struct BatchNormGradients {
  Tensor dx;
  Tensor dgamma;
  Tensor dbeta;
  Tensor dresidual;  // undefined if there was no residual
};
// `forward` is BatchNormTrain's result. The ReLU's mask is computed from scale
// and shift if there was no residual (then y may be undefined), else from y.
BatchNormGradients BatchNormBackward(const Tensor& dy, const Tensor& x,
                                     const Tensor& gamma,
                                     const BatchNormResult& forward,
                                     bool has_residual,
                                     const BatchNormOptions& options);
// `y` is BatchNormEval's result; it is read only if options.relu.
BatchNormGradients BatchNormEvalBackward(const Tensor& dy, const Tensor& x,
                                         const Tensor& y, const Tensor& gamma,
                                         const Tensor& running_mean,
                                         const Tensor& running_variance,
                                         bool has_residual,
                                         const BatchNormOptions& options);

}  // namespace baton::ops
