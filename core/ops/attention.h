// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Scaled dot-product attention (Vaswani et al., "Attention is all you need",
// 2017) of queries [N, H, T, D] to keys [N, H, S, D] and values [N, H, S, E],
// all of one floating dtype and with any strides:
//
//   softmax(q k^T / sqrt(D)) v
//
// The weights, T * S a head, never exist all at once: they are made for some
// queries at a time, in forward and backward. In f16 and bf16 a GPU has one
// kernel for it, where cuDNN knows the extents.
namespace baton::ops {

struct AttentionInputs {
  Tensor q, k, v;
};

struct AttentionOptions {
  bool causal = false;  // query i looks at keys 0 .. i only
};

struct AttentionResult {
  Tensor y;  // [N, H, T, E], lying as [N, T, H, E]
  // Where one kernel of a GPU did it, what its gradient wants beside y: f32
  // [N, H, T, 1], logs of the sums of the exponentials of scores.
  Tensor log_sums;
};
AttentionResult Attention(const AttentionInputs& in,
                          const AttentionOptions& options);

struct AttentionGradients {
  Tensor q, k, v;
};
// Writes to `into`, whose tensors have the shapes of in's and any strides.
// `forward` and `options` as in Attention; y is read only where log_sums is
// defined.
void AttentionBackward(const Tensor& dy, const AttentionInputs& in,
                       const AttentionResult& forward,
                       const AttentionOptions& options,
                       const AttentionGradients& into);

}  // namespace baton::ops
