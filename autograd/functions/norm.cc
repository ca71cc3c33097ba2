// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/norm.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/arithmetic.h"

namespace baton::autograd {
namespace {

// With momentum 1 the former running statistics do not count, even if they are
// NaN.
void Track(const Tensor& mean, const Tensor& variance, const Tensor& joined,
           const ops::BatchNormOptions& options, const Tensor& batches) {
  if (!mean.defined()) return;
  if (options.momentum == 1) {
    mean.CopyFrom(joined.Select(0, 0));
    variance.CopyFrom(joined.Select(0, 1));
  }
  ops::UpdateRunningStatistics(
      {{.mean = mean,
        .variance = variance,
        .count = batches,
        .batches = {joined.Slice(0, 0, 2).To(mean.dtype())},
        .momentum = options.momentum}});
}

// Returns dx = scale * (g - mean(g) - xhat * mean(g * xhat)) from the sums of g
// and of g * (x - mean) / stddev over all members; `grads` has scale * g.
Tensor ThroughStatistics(const ops::BatchNormGradients& grads, const Tensor& x,
                         const Tensor& gamma, const Tensor& joined,
                         BatchPeers& peers, double eps) {
  const Tensor sums = Tensor::Empty(
      {2, x.dim(1)}, {.dtype = joined.dtype(), .device = x.device()});
  sums.Select(0, 0).CopyFrom(grads.dbeta);
  sums.Select(0, 1).CopyFrom(grads.dgamma);
  peers.AddUp(sums);
  const Tensor mean = joined.Select(0, 0), variance = joined.Select(0, 2);
  Tensor factor = ops::Div(ops::PowScalar(ops::AddScalar(variance, eps), -0.5),
                           ops::Neg(joined.Select(0, 3)));
  if (gamma.defined()) factor = ops::Mul(factor, gamma.To(joined.dtype()));
  ops::MulInto(sums, factor);
  return ops::BatchNormEval(x, sums.Select(0, 1), sums.Select(0, 0), grads.dx,
                            mean, variance, {.eps = eps});
}

}  // namespace

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
  // Without a residual, scale and shift determine the ReLU's mask.
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

Variable BatchNormTrainTogether(
    const Variable& given_x, const Variable& gamma, const Variable& beta,
    const Variable& given_residual, const Tensor& running_mean,
    const Tensor& running_variance, const std::shared_ptr<BatchPeers>& peers,
    const ops::BatchNormOptions& options, const Tensor& batches) {
  const Variable x = AsWide(given_x, given_residual),
                 residual = AsWide(given_residual, given_x);
  const Tensor joined =
      ops::JoinMoments(peers->Gather(ops::BatchMoments(x.tensor())));
  const Tensor mean = joined.Select(0, 0), variance = joined.Select(0, 2);
  const Tensor result =
      ops::BatchNormEval(x.tensor(), gamma.tensor(), beta.tensor(),
                         residual.tensor(), mean, variance, options);
  Track(running_mean, running_variance, joined, options, batches);
  const bool has_residual = residual.defined();
  return RecordJoint(
      "batch_norm", result,
      {x.tensor(), gamma.tensor(), options.relu ? result : Tensor(), joined},
      {x, gamma, beta, residual}, [=](const Backprop& p) -> Tensors {
        const Tensor& all = p.saved(3);
        ops::BatchNormGradients grads = ops::BatchNormEvalBackward(
            p.dy(), p.saved(0), p.saved(2), p.saved(1), all.Select(0, 0),
            all.Select(0, 2), has_residual, options);
        const Tensor dx = ThroughStatistics(grads, p.saved(0), p.saved(1), all,
                                            *peers, options.eps);
        return {dx, grads.dgamma, grads.dbeta, grads.dresidual};
      });
}

}  // namespace baton::autograd
