// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/attention.h"
#include "models/nn/layer_norm.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

namespace baton::models {

// The standard deviation of a transformer's initial weights.
inline constexpr double kTransformerStddev = 0.02;

struct TransformerBlockOptions {
  int64_t width = 128;
  int64_t heads = 4;
  // The number of layers of the model. The initial weights before its 2 *
  // layers additions are divided by the root of that number, so that the
  // variance that they add to x does not depend on it.
  int64_t layers = 1;
};

// x + attention(norm1(x)), causal, then x + linear2(gelu(linear1(norm2(x)))),
// with x [N, T, width] and 4 * width elements between the linear layers.
// Parameters as PyTorch's TransformerEncoderLayer names them (with norm_first
// and a causal mask). Thread-compatible.
class TransformerBlock final : public nn::Module {
 public:
  TransformerBlock(const TransformerBlockOptions& options,
                   Generator& generator);
  Variable Forward(const Variable& x) override;

 private:
  nn::MultiHeadAttention& attention_;
  nn::Linear& linear1_;
  nn::Linear& linear2_;
  nn::LayerNorm& norm1_;
  nn::LayerNorm& norm2_;
};

}  // namespace baton::models
