// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Attention by one fused kernel of cuDNN, for f16 and bf16.
namespace baton::cuda {

// Shapes are those of ops::Attention, [N, H, .., ..], with any strides that
// cuDNN accepts.
struct FusedAttentionInputs {
  Tensor q, k, v;
  bool causal = false;
  double scale = 1;
};

// Writes y, and to log_sums (dense f32 [N, H, T, 1]) the logarithm of the sum
// of the exponentials of each query's scores, which the gradient needs. If
// cuDNN has no kernel for this, launches nothing and returns false.
bool TryFusedAttention(const FusedAttentionInputs& in, const Tensor& y,
                       const Tensor& log_sums);

// Likewise writes the gradients of q, k and v from what the forward wrote.
bool TryFusedAttentionBackward(const FusedAttentionInputs& in, const Tensor& y,
                               const Tensor& log_sums, const Tensor& dy,
                               const Tensor& dq, const Tensor& dk,
                               const Tensor& dv);

}  // namespace baton::cuda
