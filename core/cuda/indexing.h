// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Indices are i64 and dense; they need not be in range: what is taken from
// outside is NaN (0 of other dtypes), and what is sent there is dropped. Equal
// calls give equal bits: nothing depends on the order in which threads run.
namespace baton::cuda {

// As in core/cpu/indexing.h. Where many sources may meet in few lines, kAdd
// sums those of one cell in f32 (f64, i64), in chunks of the order of i, and
// adds the sum to the cell; elsewhere one by one, as on the CPU.
void Gather(const Tensor& out, const Tensor& x, int axis, const Tensor& index);
void Scatter(ScatterMode mode, const Tensor& out, int axis, const Tensor& index,
             const Tensor& source);

void TakeRows(const Tensor& out, const Tensor& table, const Tensor& index);
// Floating. Sums the rows of one index as Scatter does.
void AddToRows(const Tensor& table, const Tensor& dy, const Tensor& index);

// As in core/cpu/indexing.h, but `unique` has as many numbers as `index`: -1
// where one is there already or is not in [0, rows).
int64_t RowSlots(const Tensor& slots, const Tensor& unique, const Tensor& index,
                 int64_t rows);

// out [N, C] f32 = 1 where the column is the label [N], else 0. A row whose
// label is out of range is NaN.
void OneHot(const Tensor& out, const Tensor& labels);

}  // namespace baton::cuda
