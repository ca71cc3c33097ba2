// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/layer_norm.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/layer_norm.h"

namespace baton::autograd {
namespace {

// `input` and `parameters` compute the op's gradients from dy, x, gamma and the
// forward's statistics.
template <typename InputGradient, typename ParameterGradients>
Variable RecordNorm(const char* op, const Variable& x, const Variable& gamma,
                    const Variable& beta, const ops::LayerNormResult& result,
                    InputGradient input, ParameterGradients parameters) {
  return RecordJoint(
      op, result.y,
      {x.tensor(), gamma.tensor(), result.mean, result.inverse_stddev},
      {x, gamma, beta},
      [beta_dtype = beta.dtype(), input,
       parameters](const Backprop& p) -> Tensors {
        const Tensor &saved_x = p.saved(0), &saved_gamma = p.saved(1);
        const ops::LayerNormResult forward = {Tensor(), p.saved(2), p.saved(3)};
        Tensors grads(3);
        if (p.needs(0)) grads[0] = input(p.dy(), saved_x, saved_gamma, forward);
        if (p.needs(1) || p.needs(2)) {
          const auto [dgamma, dbeta] =
              parameters(p.dy(), saved_x, saved_gamma, forward);
          if (p.needs(1)) grads[1] = dgamma.To(saved_gamma.dtype());
          if (p.needs(2)) grads[2] = dbeta.To(beta_dtype);
        }
        return grads;
      },
      GradientParts::kApart);
}

}  // namespace

Variable LayerNorm(const Variable& given, const Variable& gamma,
                   const Variable& beta, double eps) {
  const Variable x = InF32(given);
  return RecordNorm(
      "layer_norm", x, gamma, beta,
      ops::LayerNorm(x.tensor(), gamma.tensor(), beta.tensor(), eps),
      ops::LayerNormBackward, ops::LayerNormParameterGradients);
}

Variable GroupNorm(const Variable& given, int64_t groups, const Variable& gamma,
                   const Variable& beta, double eps) {
  const Variable x = InF32(given);
  using Forward = ops::LayerNormResult;
  return RecordNorm(
      "group_norm", x, gamma, beta,
      ops::GroupNorm(x.tensor(), groups, gamma.tensor(), beta.tensor(), eps),
      [groups](const Tensor& dy, const Tensor& saved_x, const Tensor& g,
               const Forward& forward) {
        return ops::GroupNormBackward(dy, saved_x, groups, g, forward);
      },
      [groups](const Tensor& dy, const Tensor& saved_x, const Tensor& g,
               const Forward& forward) {
        return ops::GroupNormParameterGradients(dy, saved_x, groups, g,
                                                forward);
      });
}

}  // namespace baton::autograd
