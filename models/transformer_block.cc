// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/transformer_block.h"

#include <cmath>

#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"

namespace baton::models {
namespace {

void StartLinear(nn::Linear& linear, double stddev, Generator& generator) {
  FillNormal(linear.weight().tensor(), 0, stddev, generator);
  linear.bias()->tensor().Fill(0);
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerBlockOptions& o,
                                   Generator& generator)
    : attention_(MakeModule<nn::MultiHeadAttention>(
          "self_attn", o.width, o.heads, generator,
          ops::AttentionOptions{.causal = true})),
      linear1_(
          MakeModule<nn::Linear>("linear1", o.width, 4 * o.width, generator)),
      linear2_(
          MakeModule<nn::Linear>("linear2", 4 * o.width, o.width, generator)),
      norm1_(MakeModule<nn::LayerNorm>("norm1", Shape({o.width}))),
      norm2_(MakeModule<nn::LayerNorm>("norm2", Shape({o.width}))) {
  const double before_sums =
      kTransformerStddev / std::sqrt(2 * static_cast<double>(o.layers));
  FillNormal(attention_.in_weight().tensor(), 0, kTransformerStddev, generator);
  StartLinear(attention_.out(), before_sums, generator);
  StartLinear(linear1_, kTransformerStddev, generator);
  StartLinear(linear2_, before_sums, generator);
}

Variable TransformerBlock::Forward(const Variable& x) {
  const Variable attended = x + attention_(norm1_(x));
  const Variable hidden = autograd::Gelu(linear1_(norm2_(attended)));
  return attended + linear2_(hidden);
}

}  // namespace baton::models
