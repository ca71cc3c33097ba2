// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/attention.h"
#include "core/random.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

namespace baton::nn {

// Self-attention in `heads` heads: x [N, T, width] -> [N, T, width]. Parameters
// have the names and initialization of PyTorch's MultiheadAttention:
// "in_proj_weight" [3 * width, width] for queries, keys and values,
// "in_proj_bias", "out_proj.weight" and "out_proj.bias". Thread-compatible.
class MultiHeadAttention final : public Module {
 public:
  // Throws Error unless heads divide width.
  MultiHeadAttention(int64_t width, int64_t heads, Generator& generator,
                     const ops::AttentionOptions& options = {});
  Variable Forward(const Variable& x) override;

  const Variable& in_weight() const { return in_weight_; }
  Linear& out() { return out_; }

 private:
  const int64_t heads_;
  const ops::AttentionOptions options_;
  Variable& in_weight_;
  Variable& in_bias_;
  Linear& out_;
};

}  // namespace baton::nn
