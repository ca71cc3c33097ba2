// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/rows.h"
#include "core/tensor.h"

namespace baton::ops {

// How the rows of a bag become one.
enum class BagMode { kSum, kMean, kMax };

struct EmbeddingBagOptions {
  BagMode mode = BagMode::kMean;
  int64_t padding_index = -1;  // a row that counts in no bag; -1: none
  // Whether the offsets end with the number of indices, the end of the last
  // bag.
  bool include_last_offset = false;
  // Whether the gradient of a table, which is a leaf, is the rows that were
  // looked up (autograd/gradient.h). Not for kMax.
  bool sparse = false;
};

struct EmbeddingBagResult {
  Tensor y;      // [B, D]; 0 where a bag is empty
  Tensor bags;   // i64, of index's size: the bag of each
  Tensor scale;  // [B], y's dtype: what gradients of a bag are multiplied by
  Tensor rows;   // kMax: i64 [B, D], the row that each element is of
};

// Rows of table [V, D], floating, by bags of indices (i64; core/ops/indexing.h
// says what becomes of those out of range), each summed, averaged, or the
// greatest element by element, of equal ones the first. `index` is [B, n], or
// [L] with `offsets` i64 [B], ascending from 0: where each bag begins; it is
// undefined for the former. `weights`, where defined, are the factors of the
// rows, of index's shape and table's dtype, for kSum alone. Sums are f32 (f64
// for f64), in the order of the indices. The rows are not gathered in memory.
EmbeddingBagResult EmbeddingBag(const Tensor& table, const Tensor& index,
                                const Tensor& offsets, const Tensor& weights,
                                const EmbeddingBagOptions& options);
// The gradient of the table, of `rows` rows; `forward` as EmbeddingBag gave it,
// its y is not read. Takes memory for a row of each index.
Tensor EmbeddingBagBackward(const Tensor& dy, const Tensor& index,
                            const Tensor& weights,
                            const EmbeddingBagResult& forward, int64_t rows,
                            const EmbeddingBagOptions& options);
// The same as rows, coalesced; for sums and means.
Rows EmbeddingBagBackwardRows(const Tensor& dy, const Tensor& index,
                              const Tensor& weights,
                              const EmbeddingBagResult& forward, int64_t rows,
                              const EmbeddingBagOptions& options);
// The gradient of the weights, likewise.
Tensor EmbeddingBagBackwardWeights(const Tensor& dy, const Tensor& table,
                                   const Tensor& index,
                                   const EmbeddingBagResult& forward,
                                   const EmbeddingBagOptions& options);

}  // namespace baton::ops
