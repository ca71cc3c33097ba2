// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/rows.h"
#include "core/tensor.h"

namespace baton::ops {

// How the rows of a bag are reduced to one row.
enum class BagMode { kSum, kMean, kMax };

struct EmbeddingBagOptions {
  BagMode mode = BagMode::kMean;
  int64_t padding_index = -1;  // a row that no bag counts; -1: none
  // If true, the last offset is not the beginning of a bag but the number of
  // indices.
  bool include_last_offset = false;
  // If true, and the table is a leaf, its gradient consists of only the rows
  // that were looked up (autograd/gradient.h). Not available for kMax.
  bool sparse = false;
};

struct EmbeddingBagResult {
  Tensor y;      // [B, D]; 0 where a bag is empty
  Tensor bags;   // i64, one for each index: its bag's number
  Tensor scale;  // [B], y's dtype: the factor of each bag's gradient
  Tensor rows;   // kMax: i64 [B, D], the row that each element came from
};

// Looks up rows of the floating table [V, D] and reduces each bag of them to
// one row: their sum, mean or element-wise maximum (the first of equal elements
// counts). Either `index` is i64 [B, n] and `offsets` undefined; or `index` is
// i64 [L], and `offsets`, i64 [B] and ascending from 0, says where each bag
// begins. core/ops/indexing.h says how indices out of range are treated.
// `weights`, if defined, are factors of the rows; they have index's shape and
// table's dtype, and only kSum allows them. Sums are f32 (f64 for f64), in the
// order of the indices; the rows are not gathered in memory first.
EmbeddingBagResult EmbeddingBag(const Tensor& table, const Tensor& index,
                                const Tensor& offsets, const Tensor& weights,
                                const EmbeddingBagOptions& options);
// Returns the gradient of the table, [rows, D]. `forward` is EmbeddingBag's
// result; its y is not read. Takes temporary memory for one row of each index.
Tensor EmbeddingBagBackward(const Tensor& dy, const Tensor& index,
                            const Tensor& weights,
                            const EmbeddingBagResult& forward, int64_t rows,
                            const EmbeddingBagOptions& options);
// Like the above, but returns the gradient as coalesced rows. Not for kMax.
Rows EmbeddingBagBackwardRows(const Tensor& dy, const Tensor& index,
                              const Tensor& weights,
                              const EmbeddingBagResult& forward, int64_t rows,
                              const EmbeddingBagOptions& options);
// Returns the gradient of the weights, in index's shape.
Tensor EmbeddingBagBackwardWeights(const Tensor& dy, const Tensor& table,
                                   const Tensor& index,
                                   const EmbeddingBagResult& forward,
                                   const EmbeddingBagOptions& options);

}  // namespace baton::ops
