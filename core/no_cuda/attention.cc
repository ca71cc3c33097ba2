// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/attention.h"

#include "core/cuda/fused_attention.h"
#include "core/no_cuda/absent.h"

namespace baton::cuda {

void AttentionWeights(const Tensor&, const AttentionRows&) {
  FailWithoutCuda("attention");
}
bool TryFusedAttention(const FusedAttentionInputs&, const Tensor&,
                       const Tensor&) {
  FailWithoutCuda("attention");
}
bool TryFusedAttentionBackward(const FusedAttentionInputs&, const Tensor&,
                               const Tensor&, const Tensor&, const Tensor&,
                               const Tensor&, const Tensor&) {
  FailWithoutCuda("attention_backward");
}

}  // namespace baton::cuda
