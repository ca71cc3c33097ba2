// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/embedding_bag.h"

#include "core/cpu/embedding_bag.h"
#include "core/cuda/embedding_bag.h"
#include "core/ops/arithmetic.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "core/status.h"

namespace baton::ops {
namespace {

constexpr char kBagOp[] = "embedding_bag";

int64_t CheckBags(const Tensor& index, const Tensor& offsets,
                  const EmbeddingBagOptions& options) {
  RequireDType(kBagOp, "an index", index, DType::kI64);
  if (!offsets.defined()) {
    Require(index.rank() == 2, kBagOp,
            "expected an index [B, n], or [L] with offsets, got ",
            index.shape().ToString());
    return index.dim(0);
  }
  RequireOneDevice(kBagOp, index, offsets);
  RequireDType(kBagOp, "offsets", offsets, DType::kI64);
  Require(index.rank() == 1 && offsets.rank() == 1, kBagOp,
          "expected an index [L] with offsets [B], got ",
          index.shape().ToString(), " and ", offsets.shape().ToString());
  const int64_t bags = offsets.numel() - (options.include_last_offset ? 1 : 0);
  Require(bags > 0 || (bags == 0 && index.numel() == 0), kBagOp,
          "expected offsets for ", index.numel(), " indices, got ",
          offsets.shape().ToString());
  return bags;
}

// On a GPU a check would have to wait for the GPU; its kernel limits offsets to
// the indices, and gives NaN for indices out of range.
void CheckValuesOnCpu(const Tensor& index, const Tensor& offsets, int64_t rows,
                      const EmbeddingBagOptions& options) {
  if (index.device().is_cuda()) return;
  const int64_t* row = index.data<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) {
    Require(row[i] >= 0 && row[i] < rows, kBagOp, "index ", row[i],
            " (element ", i, ") is outside [0, ", rows, ")");
  }
  if (!offsets.defined() || offsets.numel() == 0) return;
  const int64_t* begin = offsets.data<int64_t>();
  Require(begin[0] == 0, kBagOp, "expected a first offset of 0, got ",
          begin[0]);
  for (int64_t i = 0; i < offsets.numel(); ++i) {
    Require(begin[i] <= index.numel() && (i == 0 || begin[i] >= begin[i - 1]),
            kBagOp, "expected offsets that ascend to at most ", index.numel(),
            ", got ", begin[i], " (element ", i, ")");
  }
  Require(!options.include_last_offset ||
              begin[offsets.numel() - 1] == index.numel(),
          kBagOp, "expected a last offset of ", index.numel(), ", got ",
          begin[offsets.numel() - 1]);
}

void CheckWeights(const Tensor& table, const Tensor& index,
                  const Tensor& weights, const EmbeddingBagOptions& options) {
  if (!weights.defined()) return;
  Require(options.mode == BagMode::kSum, kBagOp,
          "expected weights of sums alone");
  RequireOneDevice(kBagOp, table, weights);
  RequireSameDType(kBagOp, table, weights);
  RequireSameShape(kBagOp, index, weights);
}

// Returns bool [L]: true for indices of the padding row.
Tensor IsPadding(const Tensor& flat_index, const EmbeddingBagOptions& options) {
  const Tensor padding =
      Tensor::Full({}, static_cast<double>(options.padding_index),
                   {.dtype = DType::kI64, .device = flat_index.device()});
  return Equal(flat_index, padding);
}

// Returns x [L, ...] with zeros in the rows whose index is the padding's.
Tensor WithoutPadding(const Tensor& x, const Tensor& flat_index,
                      const EmbeddingBagOptions& options) {
  if (options.padding_index < 0) return x;
  Tensor is_padding = IsPadding(flat_index, options);
  while (is_padding.rank() < x.rank()) is_padding = is_padding.Unsqueeze(-1);
  return Where(is_padding.Expand(x.shape()), Tensor::ZerosLike(x), x);
}

// Returns the gradient of each row that was looked up, [L, D].
Tensor OfEach(const Tensor& scaled, const Tensor& weights,
              const EmbeddingBagResult& forward) {
  const Tensor each = Embedding(scaled, forward.bags);
  return weights.defined() ? Mul(each, weights.Reshape({each.dim(0), 1}))
                           : each;
}

Tensor Scaled(const Tensor& dy, const Tensor& index,
              const EmbeddingBagResult& forward) {
  RequireOneDevice(kBagOp, dy, index, forward.bags, forward.scale);
  return Mul(dy, forward.scale.Unsqueeze(1));
}

}  // namespace

EmbeddingBagResult EmbeddingBag(const Tensor& table, const Tensor& index,
                                const Tensor& offsets, const Tensor& weights,
                                const EmbeddingBagOptions& options) {
  RequireOneDevice(kBagOp, table, index);
  RequireFloating(kBagOp, table);
  Require(!options.sparse || options.mode != BagMode::kMax, kBagOp,
          "expected sparse gradients of sums and means alone");
  Require(table.rank() == 2, kBagOp, "expected a table [V, D], got ",
          table.shape().ToString());
  const int64_t bags = CheckBags(index, offsets, options);
  CheckWeights(table, index, weights, options);
  const Tensor flat = index.Contiguous().Flatten();
  const Tensor begins = offsets.defined() ? offsets.Contiguous() : offsets;
  CheckValuesOnCpu(flat, begins, table.dim(0), options);
  const TensorOptions like = {.dtype = table.dtype(), .device = table.device()};
  const TensorOptions numbers = {.dtype = DType::kI64,
                                 .device = table.device()};
  const int64_t width = table.dim(1);
  const EmbeddingBagResult result = {
      Tensor::Empty({bags, width}, like), Tensor::Empty(flat.shape(), numbers),
      Tensor::Empty({bags}, like),
      options.mode == BagMode::kMax ? Tensor::Empty({bags, width}, numbers)
                                    : Tensor()};
  KernelFor(table, cpu::EmbeddingBag, cuda::EmbeddingBag)(
      result, table.Contiguous(), flat, begins,
      weights.defined() ? weights.Contiguous().Flatten() : weights, options);
  return result;
}

Tensor EmbeddingBagBackward(const Tensor& dy, const Tensor& index,
                            const Tensor& weights,
                            const EmbeddingBagResult& forward, int64_t rows,
                            const EmbeddingBagOptions& options) {
  const Tensor scaled = Scaled(dy, index, forward);
  if (options.mode == BagMode::kMax) {
    const Tensor zeros = Tensor::Zeros(
        {rows, dy.dim(1)}, {.dtype = dy.dtype(), .device = dy.device()});
    return ScatterAdd(zeros, 0, forward.rows, scaled);
  }
  const Tensor flat = index.Contiguous().Flatten();
  const Tensor each = OfEach(scaled, weights, forward);
  return EmbeddingBackward(WithoutPadding(each, flat, options), flat, rows);
}

Rows EmbeddingBagBackwardRows(const Tensor& dy, const Tensor& index,
                              const Tensor& weights,
                              const EmbeddingBagResult& forward, int64_t rows,
                              const EmbeddingBagOptions& options) {
  Tensor flat = index.Contiguous().Flatten();
  if (options.padding_index >= 0)
    flat = MaskedFill(flat, IsPadding(flat, options), -1);
  return Coalesce({flat, OfEach(Scaled(dy, index, forward), weights, forward)},
                  rows);
}

Tensor EmbeddingBagBackwardWeights(const Tensor& dy, const Tensor& table,
                                   const Tensor& index,
                                   const EmbeddingBagResult& forward,
                                   const EmbeddingBagOptions& options) {
  RequireOneDevice(kBagOp, dy, table, index, forward.bags);
  const Tensor flat = index.Contiguous().Flatten();
  const Tensor products =
      Mul(Embedding(dy, forward.bags), Embedding(table, flat));
  return WithoutPadding(Sum(products, {1}), flat, options)
      .Reshape(index.shape());
}

}  // namespace baton::ops
