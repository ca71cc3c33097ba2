// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Indices are i64 and dense, and need not be in range: reading such an index
// gives NaN (0 for dtypes that are not floating), and what is written to it is
// dropped. Equal calls give equal bits, whatever the order in which threads
// run.
namespace baton::cuda {

// Like core/cpu/indexing.h. If many sources may meet in few lines, kAdd sums
// those of one cell in f32 (f64, i64), in chunks in the order of i, and adds
// the sum to the cell; otherwise it adds one by one, as on the CPU.
void Gather(const Tensor& out, const Tensor& x, int axis, const Tensor& index);
void Scatter(ScatterMode mode, const Tensor& out, int axis, const Tensor& index,
             const Tensor& source);

void TakeRows(const Tensor& out, const Tensor& table, const Tensor& index);
void PutRows(const Tensor& table, const Tensor& values, const Tensor& index);
// For floating tensors. Sums the rows of one index as Scatter does.
void AddToRows(const Tensor& table, const Tensor& dy, const Tensor& index);

// Like core/cpu/indexing.h, but `unique` has as many numbers as `index`: -1
// replaces repeated ones and those outside [0, rows).
int64_t RowSlots(const Tensor& slots, const Tensor& unique, const Tensor& index,
                 int64_t rows);

// Writes 1 to out [N, C], f32, where the column is the row's label, and 0
// elsewhere. A row whose label is out of range becomes NaN.
void OneHot(const Tensor& out, const Tensor& labels);

}  // namespace baton::cuda
