// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Scaled dot-product attention (Vaswani et al., "Attention is all you need",
// 2017) of queries [N, H, T, D] to keys [N, H, S, D] and values [N, H, S, E],
// which have one floating dtype and any strides:
//
//   softmax(q k^T / sqrt(D)) v
//
// The T * S weights of a head never exist all at once: forward and backward
// compute them for a block of queries at a time. For f16 and bf16 a GPU uses
// one fused kernel if cuDNN supports the shapes.
namespace baton::ops {

struct AttentionInputs {
  Tensor q, k, v;
};

struct AttentionOptions {
  bool causal = false;  // query i attends to keys 0 .. i only
};

struct AttentionResult {
  Tensor y;  // [N, H, T, E], stored as [N, T, H, E]
  // f32 [N, H, T, 1]: the logarithm of the sum of exponentials of each query's
  // scores. Defined only if a GPU's fused kernel computed y; its backward needs
  // it.
  Tensor log_sums;
};
AttentionResult Attention(const AttentionInputs& in,
                          const AttentionOptions& options);

struct AttentionGradients {
  Tensor q, k, v;
};
// Writes the gradients to `into`, whose tensors have the shapes of the inputs
// and any strides. `forward` and `options` are those of Attention; forward.y is
// read only if log_sums is defined.
void AttentionBackward(const Tensor& dy, const AttentionInputs& in,
                       const AttentionResult& forward,
                       const AttentionOptions& options,
                       const AttentionGradients& into);

}  // namespace baton::ops
