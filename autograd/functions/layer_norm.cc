// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/layer_norm.h"

#include "autograd/functions/function.h"
#include "core/ops/layer_norm.h"

namespace baton::autograd {

Variable LayerNorm(const Variable& x, const Variable& gamma,
                   const Variable& beta, double eps) {
  const ops::LayerNormResult result =
      ops::LayerNorm(x.tensor(), gamma.tensor(), beta.tensor(), eps);
  return RecordJoint(
      "layer_norm", result.y,
      {x.tensor(), gamma.tensor(), result.mean, result.inverse_stddev},
      {x, gamma, beta},
      [beta_dtype = beta.dtype()](const Backprop& p) -> Tensors {
        const Tensor &saved_x = p.saved(0), &saved_gamma = p.saved(1);
        const ops::LayerNormResult forward = {Tensor(), p.saved(2), p.saved(3)};
        Tensors grads(3);
        if (p.needs(0)) {
          grads[0] =
              ops::LayerNormBackward(p.dy(), saved_x, saved_gamma, forward);
        }
        if (p.needs(1) || p.needs(2)) {
          const auto [dgamma, dbeta] = ops::LayerNormParameterGradients(
              p.dy(), saved_x, saved_gamma, forward);
          if (p.needs(1)) grads[1] = dgamma.To(saved_gamma.dtype());
          if (p.needs(2)) grads[2] = dbeta.To(beta_dtype);
        }
        return grads;
      },
      GradientParts::kApart);
}

}  // namespace baton::autograd
