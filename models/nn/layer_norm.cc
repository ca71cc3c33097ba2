// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/layer_norm.h"

#include "autograd/functions/layer_norm.h"
#include "core/status.h"

namespace baton::nn {

LayerNorm::LayerNorm(const Shape& shape, double eps)
    : eps_(eps),
      weight_(RegisterParameter("weight", Tensor::Ones(shape))),
      bias_(RegisterParameter("bias", Tensor::Zeros(shape))) {
  Require(shape.rank() > 0 && shape.numel() > 0, "layer_norm",
          "expected a shape with elements, got ", shape.ToString());
}

Variable LayerNorm::Forward(const Variable& x) {
  return autograd::LayerNorm(x, weight_, bias_, eps_);
}

}  // namespace baton::nn
