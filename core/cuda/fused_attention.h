// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Attention in one kernel of cuDNN, f16 and bf16.
namespace baton::cuda {

// All [N, H, .., ..], see ops::Attention; any strides that cuDNN takes.
struct FusedAttentionInputs {
  Tensor q, k, v;
  bool causal = false;
  double scale = 1;
};

// Writes y and log_sums, dense f32 [N, H, T, 1]: logs of the sums of the
// exponentials of scores, for the gradient. False, and nothing was launched,
// where cuDNN has no kernel for this.
bool TryFusedAttention(const FusedAttentionInputs& in, const Tensor& y,
                       const Tensor& log_sums);

// Likewise writes the gradients of q, k and v, by what the forward wrote.
bool TryFusedAttentionBackward(const FusedAttentionInputs& in, const Tensor& y,
                               const Tensor& log_sums, const Tensor& dy,
                               const Tensor& dq, const Tensor& dk,
                               const Tensor& dv);

}  // namespace baton::cuda
