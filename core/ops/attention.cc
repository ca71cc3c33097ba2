// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "core/cpu/attention.h"
#include "core/cuda/attention.h"
#include "core/cuda/fused_attention.h"
#include "core/ops/arithmetic.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"
#include "core/ops/matmul.h"
#include "core/ops/softmax.h"

namespace baton::ops {
namespace {

// The weights computed at once: 32 MB of f32. Blocks of few queries waste less
// work on keys that a causal mask hides.
constexpr int64_t kBlockWeights = int64_t{1} << 23;
constexpr int64_t kBlockQueries = 128;

struct Range {
  int64_t begin, end;
};

// A part of the batch, some of its queries, and the number of keys that these
// attend to.
struct Block {
  Range batch, queries;
  int64_t keys;
};

int64_t Clamped(int64_t wanted, int64_t most) {
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(most, 1));
}

// Calls begin(part), then block(...) for its queries in order, then end(part),
// for each part of the batch.
template <typename Begin, typename Visit, typename End>
void ForBlocks(const AttentionInputs& in, bool causal, Begin begin, Visit visit,
               End end) {
  const int64_t batch = in.q.dim(0), queries = in.q.dim(2), keys = in.k.dim(2);
  const int64_t of_query = std::max<int64_t>(in.q.dim(1) * keys, 1);
  const int64_t rows =
      Clamped(kBlockWeights / of_query, std::min(kBlockQueries, queries));
  const int64_t entries = Clamped(kBlockWeights / (of_query * rows), batch);
  for (int64_t n = 0; n < batch; n += entries) {
    const Range part = {n, std::min(batch, n + entries)};
    begin(part);
    for (int64_t t = 0; t < queries; t += rows) {
      const int64_t last = std::min(queries, t + rows);
      visit(Block{part, {t, last}, causal ? std::min(keys, last) : keys});
    }
    end(part);
  }
}

Tensor QueriesOf(const Tensor& x, const Block& block) {
  return x.Slice(0, block.batch.begin, block.batch.end)
      .Slice(2, block.queries.begin, block.queries.end);
}
Tensor KeysOf(const Tensor& x, const Block& block) {
  return x.Slice(0, block.batch.begin, block.batch.end).Slice(2, 0, block.keys);
}

double ScaleOf(const AttentionInputs& in) {
  return 1 / std::sqrt(static_cast<double>(in.q.dim(3)));
}

// Returns the attention weights of the block, [n, H, t, s] and dense.
Tensor WeightsOf(const AttentionInputs& in, const AttentionOptions& options,
                 const Block& block) {
  const Tensor weights =
      Matmul(QueriesOf(in.q, block), KeysOf(in.k, block).Transpose(-2, -1));
  KernelFor(weights, cpu::AttentionWeights, cuda::AttentionWeights)(
      weights, {.scale = ScaleOf(in),
                .causal = options.causal,
                .first_query = block.queries.begin});
  return weights;
}

void CheckAttention(const char* op, const AttentionInputs& in) {
  RequireOneDevice(op, in.q, in.k, in.v);
  RequireFloating(op, in.q);
  const Shape &q = in.q.shape(), &k = in.k.shape(), &v = in.v.shape();
  Require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q[0] == k[0] &&
              q[1] == k[1] && q[3] == k[3] && k[0] == v[0] && k[1] == v[1] &&
              k[2] == v[2] && q[3] > 0 && k[2] > 0,
          op,
          "expected q [N, H, T, D], k [N, H, S, D] and v [N, H, S, E], got ",
          q.ToString(), ", ", k.ToString(), " and ", v.ToString());
  RequireSameDType(op, in.q, in.k);
  RequireSameDType(op, in.q, in.v);
}

// f16 and bf16 are computed in f32, because they have too few digits for
// scores.
AttentionInputs ToCompute(const AttentionInputs& in) {
  const DType dtype = IsHalf(in.q.dtype()) ? DType::kF32 : in.q.dtype();
  return {in.q.To(dtype), in.k.To(dtype), in.v.To(dtype)};
}

Tensor ZeroSum(const Tensor& like, const Range& batch) {
  const DType dtype = like.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  return Tensor::Zeros(
      {batch.end - batch.begin, like.dim(1), like.dim(2), like.dim(3)},
      {.dtype = dtype, .device = like.device()});
}

// Computes sum[.., 0 .. keys, :] += a^T b.
void AddProduct(const Tensor& sum, const Tensor& a, const Tensor& b) {
  const Tensor product = Matmul(a.Transpose(-2, -1), b);
  AddInto(sum.Slice(2, 0, product.dim(2)), product.To(sum.dtype()));
}

cuda::FusedAttentionInputs FusedInputs(const AttentionInputs& in,
                                       const AttentionOptions& options) {
  return {in.q, in.k, in.v, options.causal, ScaleOf(in)};
}

// Returns true if a fused kernel of a GPU has written the result.
bool Fused(const AttentionInputs& in, const AttentionOptions& options,
           AttentionResult& result) {
  if (in.q.device().is_cpu() || !IsHalf(in.q.dtype())) return false;
  const Tensor log_sums = Tensor::Empty(
      {in.q.dim(0), in.q.dim(1), in.q.dim(2), 1}, {.device = in.q.device()});
  if (!cuda::TryFusedAttention(FusedInputs(in, options), result.y, log_sums))
    return false;
  result.log_sums = log_sums;
  return true;
}

void RequireGradient(const char* op, const Tensor& gradient, const Tensor& x) {
  RequireOneDevice(op, x, gradient);
  RequireSameShape(op, gradient, x);
  RequireWritable(op, gradient);
}

}  // namespace

AttentionResult Attention(const AttentionInputs& in,
                          const AttentionOptions& options) {
  constexpr char kOp[] = "attention";
  CheckAttention(kOp, in);
  AttentionResult result;
  result.y = Tensor::Empty({in.q.dim(0), in.q.dim(2), in.q.dim(1), in.v.dim(3)},
                           {.dtype = in.q.dtype(), .device = in.q.device()})
                 .Transpose(1, 2);
  if (result.y.numel() == 0 || Fused(in, options, result)) return result;
  const AttentionInputs wide = ToCompute(in);
  const auto nothing = [](const Range&) {};
  ForBlocks(
      wide, options.causal, nothing,
      [&](const Block& block) {
        QueriesOf(result.y, block)
            .CopyFrom(
                Matmul(WeightsOf(wide, options, block), KeysOf(wide.v, block)));
      },
      nothing);
  return result;
}

void AttentionBackward(const Tensor& dy, const AttentionInputs& in,
                       const AttentionResult& forward,
                       const AttentionOptions& options,
                       const AttentionGradients& into) {
  constexpr char kOp[] = "attention_backward";
  CheckAttention(kOp, in);
  RequireOneDevice(kOp, in.q, dy);
  RequireSameDType(kOp, in.q, dy);
  Require(
      dy.shape() == Shape({in.q.dim(0), in.q.dim(1), in.q.dim(2), in.v.dim(3)}),
      kOp, "dy ", dy.shape().ToString(), " is not like y");
  RequireGradient(kOp, into.q, in.q);
  RequireGradient(kOp, into.k, in.k);
  RequireGradient(kOp, into.v, in.v);
  if (forward.log_sums.defined()) {
    for (const Tensor* x : {&into.q, &into.k, &into.v}) x->PrepareWrite();
    if (cuda::TryFusedAttentionBackward(FusedInputs(in, options), forward.y,
                                        forward.log_sums, dy, into.q, into.k,
                                        into.v)) {
      for (const Tensor* x : {&into.q, &into.k, &into.v}) x->BumpVersion();
      return;
    }
  }
  const AttentionInputs wide = ToCompute(in);
  const Tensor wide_dy = dy.To(wide.q.dtype());
  Tensor dk, dv;
  ForBlocks(
      wide, options.causal,
      [&](const Range& batch) {
        dk = ZeroSum(in.k, batch);
        dv = ZeroSum(in.v, batch);
      },
      [&](const Block& block) {
        const Tensor weights = WeightsOf(wide, options, block);
        const Tensor dy_block = QueriesOf(wide_dy, block);
        const Tensor dweights =
            Matmul(dy_block, KeysOf(wide.v, block).Transpose(-2, -1));
        AddProduct(dv, weights, dy_block);
        const Tensor dscores = SoftmaxBackward(dweights, weights, -1);
        ScaleInto(dscores, ScaleOf(in));
        QueriesOf(into.q, block)
            .CopyFrom(Matmul(dscores, KeysOf(wide.k, block)));
        AddProduct(dk, dscores, QueriesOf(wide.q, block));
      },
      [&](const Range& batch) {
        into.k.Slice(0, batch.begin, batch.end).CopyFrom(dk);
        into.v.Slice(0, batch.begin, batch.end).CopyFrom(dv);
      });
}

}  // namespace baton::ops
