// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

namespace baton::ops {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum =
      0.1;  // of the running statistics: new = old + momentum * (batch - old)
  bool relu = false;  // y = relu(bn(x) + residual), fused
};

struct BatchNormResult {
  Tensor y;
  Tensor mean;            // [C] f32 (f64 for f64), of the batch
  Tensor inverse_stddev;  // [C]
  // [C], of y = x * scale + shift. With a ReLU and no residual they give
  // backward the mask without reading y.
  Tensor scale;
  Tensor shift;
};

// Per-channel normalisation of x [N, C, ...] by batch statistics. Updates the
// running mean and (unbiased) variance in place where they are defined, and
// adds one to `batches`, i64 [], likewise; with momentum 1 what was in them
// does not count, be it NaN. `residual`, where defined, has x's shape and is
// added before the ReLU. The order of summation depends on shape and memory
// order alone, so results are equal for any number of threads. gamma and beta
// may be undefined: ones and zeros.
BatchNormResult BatchNormTrain(const Tensor& x, const Tensor& gamma,
                               const Tensor& beta, const Tensor& residual,
                               const Tensor& running_mean,
                               const Tensor& running_variance,
                               const BatchNormOptions& options,
                               const Tensor& batches = Tensor());

// What is known of a batch x [N, C, ...] by itself: how many values each
// channel has, their mean and their variance, [3, C] in f32 (f64 for f64).
// Zeros where there are none.
Tensor BatchMoments(const Tensor& x);
// Of the batches of several, [batches, 3, C], taken as one: the mean, the
// unbiased variance, the variance and the count, [4, C].
Tensor JoinMoments(const Tensor& batches);

// Running statistics [C], f32 or on the CPU f64, that have not seen some
// batches yet.
struct RunningUpdate {
  Tensor mean, variance;
  Tensor count = {};            // i64 []; may be undefined
  std::vector<Tensor> batches;  // [2, C] each: mean and unbiased variance
  double momentum = 0.1;
};
// Moves them by their batches, first one first, as BatchNormTrain would have:
// on a GPU all together in one launch for every eight batches. For
// micro-batches that are normalised beside each other, which running statistics
// would order.
void UpdateRunningStatistics(const std::vector<RunningUpdate>& updates);

// By the running statistics.
Tensor BatchNormEval(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual, const Tensor& running_mean,
                     const Tensor& running_variance,
                     const BatchNormOptions& options);

struct BatchNormGradients {
  Tensor dx;
  Tensor dgamma;
  Tensor dbeta;
  Tensor dresidual;  // undefined where there was no residual
};
// `forward` as BatchNormTrain gave it. The ReLU's mask comes from scale and
// shift where it can (then y may be undefined), else from y.
BatchNormGradients BatchNormBackward(const Tensor& dy, const Tensor& x,
                                     const Tensor& gamma,
                                     const BatchNormResult& forward,
                                     bool has_residual,
                                     const BatchNormOptions& options);
// `y` as BatchNormEval gave it; read only where options.relu.
BatchNormGradients BatchNormEvalBackward(const Tensor& dy, const Tensor& x,
                                         const Tensor& y, const Tensor& gamma,
                                         const Tensor& running_mean,
                                         const Tensor& running_variance,
                                         bool has_residual,
                                         const BatchNormOptions& options);

}  // namespace baton::ops
