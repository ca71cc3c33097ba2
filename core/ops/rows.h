// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"

// Some rows of a table [V, D]: what a step has to do with an embedding of which
// a batch looks up few words. ops::Embedding takes them out, OptimizerStep
// steps them (core/ops/optimizer.h).
namespace baton::ops {

// Row index[i] of the table is, or gets, values[i]. An index of -1 is none.
struct Rows {
  Tensor index = {};   // i64 [n]
  Tensor values = {};  // [n, D]
};

// The rows by their numbers, each once: values of one number are summed in
// their order. On the CPU in ascending order. On a GPU, where to count is to
// wait, there are as many as before: what was summed into another is -1, with
// zeros, and so is what is not in [0, V). On the CPU that throws Error.
Rows Coalesce(const Rows& rows, int64_t table_rows);

// table[index[i]] += values[i], in place, in the order of i on the CPU and as
// ScatterAdd on a GPU. Throws Error where a row does not fit.
void AddRowsInto(const Tensor& table, const Rows& rows);

// That rows fit a table of this shape; on the CPU all numbers, too. Throws
// Error led by `op`.
void RequireRows(const char* op, const Shape& table, const Rows& rows);

}  // namespace baton::ops
