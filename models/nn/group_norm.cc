// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/group_norm.h"

#include "autograd/functions/layer_norm.h"
#include "core/status.h"

namespace baton::nn {

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps)
    : groups_(groups),
      eps_(eps),
      weight_(RegisterParameter("weight", Tensor::Ones({channels}))),
      bias_(RegisterParameter("bias", Tensor::Zeros({channels}))) {
  Require(groups > 0 && channels > 0 && channels % groups == 0, "group_norm",
          "expected groups that divide the channels, got ", groups, " for ",
          channels);
}

Variable GroupNorm::Forward(const Variable& x) {
  return autograd::GroupNorm(x, groups_, weight_, bias_, eps_);
}

}  // namespace baton::nn
