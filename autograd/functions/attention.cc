// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/attention.h"

#include <array>

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/status.h"

namespace baton::autograd {
namespace {

// Returns `inputs` and the other tensors that AttentionBackward needs.
Tensors Saved(Tensors inputs, const ops::AttentionResult& result) {
  inputs.push_back(result.log_sums.defined() ? result.y : Tensor());
  inputs.push_back(result.log_sums);
  return inputs;
}

// Views [N, T, 3 * H * D] as queries, keys and values [N, H, T, D].
std::array<Tensor, 3> Parts(const Tensor& qkv, int64_t heads) {
  const int64_t width = qkv.dim(2) / 3;
  std::array<Tensor, 3> parts;
  for (size_t i = 0; i < 3; ++i) {
    const auto at = static_cast<int64_t>(i) * width;
    parts[i] = qkv.Slice(2, at, at + width)
                   .Reshape({qkv.dim(0), qkv.dim(1), heads, width / heads})
                   .Transpose(1, 2);
  }
  return parts;
}

}  // namespace

Variable Attention(const Variable& given_q, const Variable& given_k,
                   const Variable& given_v,
                   const ops::AttentionOptions& options) {
  const Variable q = Lowered(given_q), k = Lowered(given_k),
                 v = Lowered(given_v);
  const ops::AttentionResult result =
      ops::Attention({q.tensor(), k.tensor(), v.tensor()}, options);
  return RecordJoint(
      "attention", result.y,
      Saved({q.tensor(), k.tensor(), v.tensor()}, result), {q, k, v},
      [options](const Backprop& p) -> Tensors {
        const ops::AttentionInputs in = {p.saved(0), p.saved(1), p.saved(2)};
        const ops::AttentionGradients grads = {Tensor::EmptyLike(in.q),
                                               Tensor::EmptyLike(in.k),
                                               Tensor::EmptyLike(in.v)};
        ops::AttentionBackward(p.dy(), in, {p.saved(3), p.saved(4)}, options,
                               grads);
        return {grads.q, grads.k, grads.v};
      });
}

Variable SelfAttention(const Variable& given_qkv, int64_t heads,
                       const ops::AttentionOptions& options) {
  const Variable qkv = Lowered(given_qkv);
  const Tensor all = qkv.tensor().Contiguous();
  Require(all.rank() == 3 && heads > 0 && all.dim(2) % (3 * heads) == 0,
          "self_attention", "expected qkv [N, T, 3 * H * D] of ", heads,
          " heads, got ", all.shape().ToString());
  const auto [q, k, v] = Parts(all, heads);
  const ops::AttentionResult result = ops::Attention({q, k, v}, options);
  const Shape shape = {all.dim(0), all.dim(1), all.dim(2) / 3};
  return RecordJoint(
      "self_attention", result.y.Transpose(1, 2).Reshape(shape),
      Saved({all}, result), {qkv},
      [options, heads](const Backprop& p) -> Tensors {
        const Tensor& saved = p.saved(0);
        const auto [in_q, in_k, in_v] = Parts(saved, heads);
        const Tensor dqkv = Tensor::EmptyLike(saved);
        const auto [dq, dk, dv] = Parts(dqkv, heads);
        const Tensor dy = p.dy()
                              .Reshape({saved.dim(0), saved.dim(1), heads,
                                        saved.dim(2) / 3 / heads})
                              .Transpose(1, 2);
        ops::AttentionBackward(dy, {in_q, in_k, in_v}, {p.saved(1), p.saved(2)},
                               options, {dq, dk, dv});
        return {dqkv};
      });
}

}  // namespace baton::autograd
