// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/rows.h"

#include "core/cpu/indexing.h"
#include "core/cuda/indexing.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {

void RequireRows(const char* op, const Shape& table, const Rows& rows) {
  RequireOneDevice(op, rows.values, rows.index);
  RequireDType(op, "an index", rows.index, DType::kI64);
  Require(table.rank() == 2 && rows.index.rank() == 1 &&
              rows.values.shape() == Shape({rows.index.numel(), table[1]}),
          op, "rows ", rows.values.shape().ToString(), " by index ",
          rows.index.shape().ToString(), " are not of a table ",
          table.ToString());
  if (rows.index.device().is_cuda()) return;
  const Tensor index = rows.index.Contiguous();
  const int64_t* numbers = index.data<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) {
    Require(numbers[i] >= -1 && numbers[i] < table[0], op, "row ", numbers[i],
            " (element ", i, ") is outside [0, ", table[0], ")");
  }
}

Rows Coalesce(const Rows& rows, int64_t table_rows) {
  constexpr char kOp[] = "coalesce";
  Require(rows.values.defined() && rows.values.rank() == 2, kOp,
          "expected values [N, D]");
  RequireFloating(kOp, rows.values);
  RequireRows(kOp, Shape({table_rows, rows.values.dim(1)}), rows);
  const Tensor index = rows.index.Contiguous();
  const Tensor slots = Tensor::EmptyLike(index);
  Tensor unique = Tensor::EmptyLike(index);
  unique = unique.Slice(0, 0,
                        KernelFor(index, cpu::RowSlots, cuda::RowSlots)(
                            slots, unique, index, table_rows));
  const Tensor sums = Tensor::Zeros(
      {unique.numel(), rows.values.dim(1)},
      {.dtype = rows.values.dtype(), .device = rows.values.device()});
  KernelFor(sums, cpu::AddToRows, cuda::AddToRows)(
      sums, rows.values.Contiguous(), slots);
  return {unique, sums};
}

namespace {

using WriteRows = void (*)(const Tensor& table, const Tensor& values,
                           const Tensor& index);

void WriteInto(const char* op, const Tensor& table, const Rows& rows,
               WriteRows on_cpu, WriteRows on_gpu) {
  RequireOneDevice(op, table, rows.values);
  RequireFloating(op, table);
  RequireSameDType(op, table, rows.values);
  RequireRows(op, table.shape(), rows);
  Require(table.IsContiguous(), op, "expected a dense table");
  table.PrepareWrite();
  KernelFor(table, on_cpu, on_gpu)(table, rows.values.Contiguous(),
                                   rows.index.Contiguous());
  table.BumpVersion();
}

}  // namespace

void AddRowsInto(const Tensor& table, const Rows& rows) {
  WriteInto("add_rows", table, rows, cpu::AddToRows, cuda::AddToRows);
}

void PutRowsInto(const Tensor& table, const Rows& rows) {
  WriteInto("put_rows", table, rows, cpu::PutRows, cuda::PutRows);
}

}  // namespace baton::ops
