// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/attention.h"

#include "autograd/functions/attention.h"
#include "autograd/functions/linear.h"
#include "core/status.h"
#include "models/nn/init.h"

namespace baton::nn {
namespace {

Tensor EmptyInWeight(int64_t width, int64_t heads) {
  Require(width > 0 && heads > 0 && width % heads == 0, "multi_head_attention",
          "expected heads that divide the width, got ", heads, " for ", width);
  return Tensor::Empty({3 * width, width});
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t width, int64_t heads,
                                       Generator& generator,
                                       const ops::AttentionOptions& options)
    : heads_(heads),
      options_(options),
      in_weight_(
          RegisterParameter("in_proj_weight", EmptyInWeight(width, heads))),
      in_bias_(RegisterParameter("in_proj_bias", Tensor::Zeros({3 * width}))),
      out_(MakeModule<Linear>("out_proj", width, width, generator)) {
  XavierUniform(in_weight_.tensor(), 1, generator);
  out_.bias()->tensor().Fill(0);
}

Variable MultiHeadAttention::Forward(const Variable& x) {
  const Variable qkv = autograd::Linear(x, in_weight_, in_bias_);
  return out_(autograd::SelfAttention(qkv, heads_, options_));
}

}  // namespace baton::nn
