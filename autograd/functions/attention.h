// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/attention.h"

namespace baton::autograd {

// Returns softmax(q k^T / sqrt(D)) v, as core/ops/attention.h describes: q [N,
// H, T, D], k [N, H, S, D], v [N, H, S, E] -> [N, H, T, E].
Variable Attention(const Variable& q, const Variable& k, const Variable& v,
                   const ops::AttentionOptions& options = {});

// Computes the same for queries, keys and values that are adjacent in one
// tensor: qkv [N, T, 3 * H * D] -> [N, T, H * D].
Variable SelfAttention(const Variable& qkv, int64_t heads,
                       const ops::AttentionOptions& options = {});

}  // namespace baton::autograd
