// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/layer_norm.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void LayerNorm(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
               const Tensor&, const Tensor&, double, int64_t) {
  FailWithoutCuda("layer_norm");
}
void LayerNormBackward(const Tensor&, const Tensor&, const Tensor&,
                       const Tensor&, const Tensor&, const Tensor&, int64_t) {
  FailWithoutCuda("layer_norm_backward");
}
void LayerNormParameters(const Tensor&, const Tensor&, const Tensor&,
                         const Tensor&, const Tensor&, const Tensor&, int64_t) {
  FailWithoutCuda("layer_norm_backward");
}

}  // namespace baton::cuda
