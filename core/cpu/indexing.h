// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Indices are i64 and within range.
namespace baton::cpu {

// out[.., i, ..] = x[.., index[.., i, ..], ..]; `out` has index's shape.
void Gather(const Tensor& out, const Tensor& x, int axis, const Tensor& index);

void Scatter(ScatterMode mode, const Tensor& out, int axis, const Tensor& index,
             const Tensor& source);

// Dense tensors: out [N, D] = rows of table [V, D] by index [N].
void TakeRows(const Tensor& out, const Tensor& table, const Tensor& index);
// Adds rows of dy [N, D] to table [V, D] by index [N], in the order of N; those
// of index -1 nowhere.
void AddToRows(const Tensor& table, const Tensor& dy, const Tensor& index);

// `unique`: the numbers of `index` [N] that are not -1, each once, ascending;
// how many. slots [N]: where in it each is, or -1.
int64_t RowSlots(const Tensor& slots, const Tensor& unique, const Tensor& index,
                 int64_t rows);

// out [N, C] f32 = 1 where the column is the label [N], else 0.
void OneHot(const Tensor& out, const Tensor& labels);

}  // namespace baton::cpu
