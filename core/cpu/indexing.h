// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Indices are i64 and in range; the caller has checked them.
namespace baton::cpu {

// Writes out[.., i, ..] = x[.., index[.., i, ..], ..]; `out` has index's shape.
void Gather(const Tensor& out, const Tensor& x, int axis, const Tensor& index);

void Scatter(ScatterMode mode, const Tensor& out, int axis, const Tensor& index,
             const Tensor& source);

// Writes to out [N, D] the rows of table [V, D] that index [N] names. All are
// dense.
void TakeRows(const Tensor& out, const Tensor& table, const Tensor& index);
// Writes row i of values [N, D] to row index[i] of table [V, D]; no two have
// the same index. Rows whose index is -1 are not written.
void PutRows(const Tensor& table, const Tensor& values, const Tensor& index);
// Adds row i of dy [N, D] to row index[i] of table [V, D], in the order of i.
// Rows whose index is -1 are not added.
void AddToRows(const Tensor& table, const Tensor& dy, const Tensor& index);

// Writes to `unique` the numbers in index [N] that are not -1, each once and
// ascending, and returns how many there are. Writes to slots [N] the position
// of each index in `unique`, or -1.
int64_t RowSlots(const Tensor& slots, const Tensor& unique, const Tensor& index,
                 int64_t rows);

// Writes 1 to out [N, C], f32, where the column is the row's label, and 0
// elsewhere.
void OneHot(const Tensor& out, const Tensor& labels);

}  // namespace baton::cpu
