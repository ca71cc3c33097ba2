// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"

// Some rows of a table [V, D], for embeddings of which each batch looks up only
// a few rows. ops::Embedding reads such rows, and OptimizerStep steps them
// (core/ops/optimizer.h).
namespace baton::ops {

// values[i] belongs to row index[i] of the table. An index of -1 means no row.
struct Rows {
  Tensor index = {};   // i64 [n]
  Tensor values = {};  // [n, D]
};

// Sums the values of equal indices, in their order, so that each row is there
// at most once. On the CPU the result is in ascending order of rows, and an
// index outside of [0, V) throws Error. On a GPU counting would have to wait
// for the GPU, so the result has as many entries as before: an entry that was
// added to another one, or whose index is outside of [0, V), has the index -1
// and zeros.
Rows Coalesce(const Rows& rows, int64_t table_rows);

// Computes table[index[i]] += values[i] in place: on the CPU in the order of i,
// on a GPU as ScatterAdd does. Throws Error if a row does not fit the table.
void AddRowsInto(const Tensor& table, const Rows& rows);

// Writes values[i] to row index[i] of the table in place; each row may be there
// at most once. Throws Error if a row does not fit the table.
void PutRowsInto(const Tensor& table, const Rows& rows);

// Throws Error, led by `op`, unless the rows fit a table of this shape. On a
// GPU the indices are not checked.
void RequireRows(const char* op, const Shape& table, const Rows& rows);

}  // namespace baton::ops
