// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/batch_norm.h"

#include "models/nn/scopes.h"

namespace baton::nn {

BatchNorm2d::BatchNorm2d(int64_t channels, const BatchNormOptions& options)
    : options_(options),
      weight_(RegisterParameter("weight", Tensor::Ones({channels}))),
      bias_(RegisterParameter("bias", Tensor::Zeros({channels}))),
      running_mean_(RegisterBuffer("running_mean", Tensor::Zeros({channels}))),
      running_variance_(
          RegisterBuffer("running_var", Tensor::Ones({channels}))),
      batches_(RegisterBuffer("num_batches_tracked",
                              Tensor::Scalar(0, DType::kI64))) {}

Variable BatchNorm2d::Run(const Variable& x, const Variable& residual,
                          bool relu) {
  const ops::BatchNormOptions options = {
      .eps = options_.eps, .momentum = options_.momentum, .relu = relu};
  if (!is_training()) {
    return autograd::BatchNormEval(x, weight_, bias_, residual, running_mean_,
                                   running_variance_, options);
  }
  PostponedStatistics* const postponed = PostponedStatistics::Current();
  if (postponed != nullptr && running_mean_.dtype() == DType::kF32) {
    const int64_t members = peers_ ? peers_->members() : 1;
    const Tensor batch = postponed->Add(
        running_mean_, running_variance_, batches_, options_.momentum,
        members * x.tensor().numel() / x.dim(1));
    ops::BatchNormOptions alone = options;
    alone.momentum = 1;
    return ByBatch(x, residual, batch.Select(0, 0), batch.Select(0, 1), alone);
  }
  return ByBatch(x, residual, running_mean_, running_variance_, options,
                 batches_);
}

Variable BatchNorm2d::ByBatch(const Variable& x, const Variable& residual,
                              const Tensor& running_mean,
                              const Tensor& running_variance,
                              const ops::BatchNormOptions& options,
                              const Tensor& batches) {
  if (peers_ != nullptr) {
    return autograd::BatchNormTrainTogether(x, weight_, bias_, residual,
                                            running_mean, running_variance,
                                            peers_, options, batches);
  }
  return autograd::BatchNormTrain(x, weight_, bias_, residual, running_mean,
                                  running_variance, options, batches);
}

Variable BatchNorm2d::Forward(const Variable& x) {
  return Run(x, Variable(), /*relu=*/false);
}

Variable BatchNorm2d::ForwardRelu(const Variable& x) {
  return Run(x, Variable(), /*relu=*/true);
}

Variable BatchNorm2d::ForwardAddRelu(const Variable& x,
                                     const Variable& residual) {
  return Run(x, residual, /*relu=*/true);
}

}  // namespace baton::nn
