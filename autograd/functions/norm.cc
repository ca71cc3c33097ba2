// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/norm.h"

#include <vector>

#include "autograd/functions/function.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"

namespace baton::autograd {
namespace {

// [C] -> [1, C, 1, ...], to broadcast against x.
Tensor PerChannel(const Tensor& values, const Tensor& x) {
  Dims dims(static_cast<size_t>(x.rank()), 1);
  dims[1] = values.numel();
  return values.To(x.dtype()).Reshape(Shape(dims));
}

// [N, C, ...] -> [C]
Tensor SumPerChannel(const Tensor& x) {
  std::vector<int> axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  return ops::Sum(x, axes);
}

}  // namespace

Variable BatchNormTrain(const Variable& x, const Variable& gamma,
                        const Variable& beta, const Variable& residual,
                        const Tensor& running_mean,
                        const Tensor& running_variance,
                        const ops::BatchNormOptions& options) {
  const ops::BatchNormResult result = ops::BatchNormTrain(
      x.tensor(), gamma.tensor(), beta.tensor(), residual.tensor(),
      running_mean, running_variance, options);
  // Only the ReLU's mask needs y.
  const Tensor y = options.relu ? result.y : Tensor();
  const bool has_residual = residual.defined();
  return RecordJoint(
      "batch_norm", result.y,
      {x.tensor(), gamma.tensor(), y, result.mean, result.inverse_stddev},
      {x, gamma, beta, residual}, [=](const Backprop& p) -> Tensors {
        ops::BatchNormGradients grads = ops::BatchNormBackward(
            p.dy(), p.saved(0), p.saved(1),
            {p.saved(2), p.saved(3), p.saved(4)}, has_residual, options);
        return {grads.dx, grads.dgamma, grads.dbeta, grads.dresidual};
      });
}

Variable BatchNormEval(const Variable& x, const Variable& gamma,
                       const Variable& beta, const Variable& residual,
                       const Tensor& running_mean,
                       const Tensor& running_variance,
                       const ops::BatchNormOptions& options) {
  const Tensor result = ops::BatchNormEval(
      x.tensor(), gamma.tensor(), beta.tensor(), residual.tensor(),
      running_mean, running_variance, options);
  const Tensor y = options.relu ? result : Tensor();
  return RecordJoint(
      "batch_norm", result,
      {x.tensor(), gamma.tensor(), y, running_mean, running_variance},
      {x, gamma, beta, residual}, [options](const Backprop& p) -> Tensors {
        const Tensor &v = p.saved(0), &variance = p.saved(4);
        const Tensor dsum =
            options.relu ? ops::ReluBackward(p.dy(), p.saved(2)) : p.dy();
        const Tensor inverse =
            ops::PowScalar(ops::AddScalar(variance, options.eps), -0.5);  // [C]
        Tensors grads(4);
        if (p.needs(0)) {
          const Tensor scale =
              ops::Mul(p.saved(1).To(inverse.dtype()), inverse);
          grads[0] = ops::Mul(dsum, PerChannel(scale, v));
        }
        if (p.needs(1)) {
          const Tensor centred = ops::Sub(v, PerChannel(p.saved(3), v));
          const Tensor dgamma = ops::Mul(SumPerChannel(ops::Mul(dsum, centred)),
                                         inverse.To(v.dtype()));
          grads[1] = dgamma.To(p.saved(1).dtype());
        }
        if (p.needs(2)) grads[2] = SumPerChannel(dsum).To(p.saved(1).dtype());
        if (p.needs(3)) grads[3] = dsum;
        return grads;
      });
}

}  // namespace baton::autograd
