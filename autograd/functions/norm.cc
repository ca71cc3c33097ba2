// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/norm.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"

namespace baton::autograd {
Variable BatchNormTrain(const Variable& given_x, const Variable& gamma,
                        const Variable& beta, const Variable& given_residual,
                        const Tensor& running_mean,
                        const Tensor& running_variance,
                        const ops::BatchNormOptions& options,
                        const Tensor& batches) {
  const Variable x = AsWide(given_x, given_residual),
                 residual = AsWide(given_residual, given_x);
  const ops::BatchNormResult result = ops::BatchNormTrain(
      x.tensor(), gamma.tensor(), beta.tensor(), residual.tensor(),
      running_mean, running_variance, options, batches);
  const bool has_residual = residual.defined();
  // scale and shift give the ReLU's mask where there is no residual.
  const Tensor y = options.relu && has_residual ? result.y : Tensor();
  return RecordJoint(
      "batch_norm", result.y,
      {x.tensor(), gamma.tensor(), y, result.mean, result.inverse_stddev,
       result.scale, result.shift},
      {x, gamma, beta, residual}, [=](const Backprop& p) -> Tensors {
        ops::BatchNormGradients grads = ops::BatchNormBackward(
            p.dy(), p.saved(0), p.saved(1),
            {p.saved(2), p.saved(3), p.saved(4), p.saved(5), p.saved(6)},
            has_residual, options);
        return {grads.dx, grads.dgamma, grads.dbeta, grads.dresidual};
      });
}

Variable BatchNormEval(const Variable& given_x, const Variable& gamma,
                       const Variable& beta, const Variable& given_residual,
                       const Tensor& running_mean,
                       const Tensor& running_variance,
                       const ops::BatchNormOptions& options) {
  const Variable x = AsWide(given_x, given_residual),
                 residual = AsWide(given_residual, given_x);
  const Tensor result = ops::BatchNormEval(
      x.tensor(), gamma.tensor(), beta.tensor(), residual.tensor(),
      running_mean, running_variance, options);
  const Tensor y = options.relu ? result : Tensor();
  const bool has_residual = residual.defined();
  return RecordJoint(
      "batch_norm", result,
      {x.tensor(), gamma.tensor(), y, running_mean, running_variance},
      {x, gamma, beta, residual}, [=](const Backprop& p) -> Tensors {
        ops::BatchNormGradients grads = ops::BatchNormEvalBackward(
            p.dy(), p.saved(0), p.saved(2), p.saved(1), p.saved(3), p.saved(4),
            has_residual, options);
        return {grads.dx, grads.dgamma, grads.dbeta, grads.dresidual};
      });
}

}  // namespace baton::autograd
