// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/indexing.h"

#include "core/cpu/indexing.h"
#include "core/cuda/indexing.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

// Returns dense indices; on the CPU checks that all are in [0, size). On a GPU
// a check would have to wait for the GPU, so the kernels check instead.
Tensor CheckedIndex(const char* op, const Tensor& index, int64_t size) {
  RequireDType(op, "an index", index, DType::kI64);
  Tensor dense = index.Contiguous();
  if (dense.device().is_cuda()) return dense;
  const int64_t* values = dense.data<int64_t>();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    Require(values[i] >= 0 && values[i] < size, op, "index ", values[i],
            " (element ", i, ") is outside [0, ", size, ")");
  }
  return dense;
}

// Requires that `index` has x's rank and, on axes other than `axis`, no larger
// extents.
void RequireIndexShape(const char* op, const Tensor& x, int axis,
                       const Tensor& index) {
  Require(index.rank() == x.rank(), op, "expected an index of rank ", x.rank(),
          ", got ", index.shape().ToString());
  for (int d = 0; d < x.rank(); ++d) {
    Require(d == axis || index.dim(d) <= x.dim(d), op, "index ",
            index.shape().ToString(), " is larger than ", x.shape().ToString(),
            " on axis ", d);
  }
}

Tensor ScatterInto(const char* op, ScatterMode mode, const Tensor& x, int axis,
                   const Tensor& index, const Tensor& source) {
  RequireOneDevice(op, x, index, source);
  RequireSameDType(op, x, source);
  RequireSameShape(op, index, source);
  const int at = NormalizeAxis(op, axis, x.rank());
  RequireIndexShape(op, x, at, index);
  const Tensor checked = CheckedIndex(op, index, x.dim(at));
  Tensor out = x.Clone();
  KernelFor(out, cpu::Scatter, cuda::Scatter)(mode, out, at, checked, source);
  return out;
}

void RequirePart(const char* op, const Tensor& first, const Tensor& part,
                 int axis) {
  RequireOneDevice(op, first, part);
  RequireSameDType(op, first, part);
  bool fits = part.rank() == first.rank();
  for (int d = 0; fits && d < first.rank(); ++d) {
    fits = d == axis || part.dim(d) == first.dim(d);
  }
  Require(fits, op, "shapes ", first.shape().ToString(), " and ",
          part.shape().ToString(), " differ on more than axis ", axis);
}

void RequireTable(const char* op, const Tensor& table) {
  Require(table.rank() == 2, op, "expected a table [V, D], got ",
          table.shape().ToString());
}

// Returns [..., width] for an index [...].
Shape RowsShape(const Tensor& index, int64_t width) {
  Dims dims = index.shape().dims();
  dims.push_back(width);
  return Shape(std::move(dims));
}

void TakeRows(const char* op, const Tensor& out, const Tensor& table,
              const Tensor& index) {
  const Tensor checked = CheckedIndex(op, index, table.dim(0));
  KernelFor(out, cpu::TakeRows, cuda::TakeRows)(out, table.Contiguous(),
                                                checked);
}

}  // namespace

Tensor Cat(const std::vector<Tensor>& parts, int axis) {
  constexpr char kOp[] = "cat";
  Require(!parts.empty(), kOp, "no tensors");
  const Tensor& first = parts[0];
  RequireOneDevice(kOp, first);
  const int at = NormalizeAxis(kOp, axis, first.rank());
  Dims dims = first.shape().dims();
  int64_t& extent = dims[static_cast<size_t>(at)];
  extent = 0;
  for (const Tensor& part : parts) {
    RequirePart(kOp, first, part, at);
    extent += part.dim(at);
  }
  Tensor out =
      Tensor::Empty(Shape(std::move(dims)), {.dtype = first.dtype(),
                                             .device = first.device(),
                                             .format = first.SuggestFormat()});
  int64_t start = 0;
  for (const Tensor& part : parts) {
    const int64_t end = start + part.dim(at);
    out.Slice(at, start, end).CopyFrom(part);
    start = end;
  }
  return out;
}

Tensor Stack(const std::vector<Tensor>& parts, int axis) {
  Require(!parts.empty(), "stack", "no tensors");
  RequireOneDevice("stack", parts[0]);
  const int at = NormalizeAxis("stack", axis, parts[0].rank() + 1);
  std::vector<Tensor> unsqueezed;
  for (const Tensor& part : parts) {
    RequireOneDevice("stack", part);
    RequireSameShape("stack", parts[0], part);
    unsqueezed.push_back(part.Unsqueeze(at));
  }
  return Cat(unsqueezed, at);
}

Tensor Gather(const Tensor& x, int axis, const Tensor& index) {
  constexpr char kOp[] = "gather";
  RequireOneDevice(kOp, x, index);
  const int at = NormalizeAxis(kOp, axis, x.rank());
  RequireIndexShape(kOp, x, at, index);
  const Tensor checked = CheckedIndex(kOp, index, x.dim(at));
  Tensor out =
      Tensor::Empty(index.shape(), {.dtype = x.dtype(), .device = x.device()});
  KernelFor(out, cpu::Gather, cuda::Gather)(out, x, at, checked);
  return out;
}

Tensor Scatter(const Tensor& x, int axis, const Tensor& index,
               const Tensor& source) {
  return ScatterInto("scatter", ScatterMode::kAssign, x, axis, index, source);
}

Tensor ScatterAdd(const Tensor& x, int axis, const Tensor& index,
                  const Tensor& source) {
  return ScatterInto("scatter_add", ScatterMode::kAdd, x, axis, index, source);
}

Tensor Embedding(const Tensor& table, const Tensor& index) {
  constexpr char kOp[] = "embedding";
  RequireOneDevice(kOp, table, index);
  RequireTable(kOp, table);
  Tensor out =
      Tensor::Empty(RowsShape(index, table.dim(1)),
                    {.dtype = table.dtype(), .device = table.device()});
  TakeRows(kOp, out, table, index);
  return out;
}

void EmbeddingInto(const Tensor& out, const Tensor& table,
                   const Tensor& index) {
  constexpr char kOp[] = "embedding";
  RequireOneDevice(kOp, table, index, out);
  RequireTable(kOp, table);
  RequireSameDType(kOp, table, out);
  Require(out.shape() == RowsShape(index, table.dim(1)) && out.IsContiguous(),
          kOp, "expected a dense ", RowsShape(index, table.dim(1)).ToString(),
          " to write to, got ", out.shape().ToString());
  out.PrepareWrite();
  TakeRows(kOp, out, table, index);
  out.BumpVersion();
}

Tensor EmbeddingBackward(const Tensor& dy, const Tensor& index, int64_t rows,
                         int64_t padding) {
  constexpr char kOp[] = "embedding_backward";
  RequireOneDevice(kOp, dy, index);
  RequireFloating(kOp, dy);
  Require(padding >= -1 && padding < rows, kOp, "padding row ", padding,
          " is outside [0, ", rows, ")");
  Require(dy.rank() == index.rank() + 1 &&
              dy.shape() == RowsShape(index, dy.dim(-1)),
          kOp, "expected dy [..., D] for index ", index.shape().ToString(),
          ", got ", dy.shape().ToString());
  const Tensor checked = CheckedIndex(kOp, index, rows);
  Tensor table = Tensor::Zeros({rows, dy.dim(-1)},
                               {.dtype = dy.dtype(), .device = dy.device()});
  KernelFor(table, cpu::AddToRows, cuda::AddToRows)(table, dy.Contiguous(),
                                                    checked);
  if (padding >= 0) table.Select(0, padding).Fill(0);
  return table;
}

Tensor OneHot(const Tensor& labels, int64_t classes) {
  constexpr char kOp[] = "one_hot";
  RequireOneDevice(kOp, labels);
  Require(labels.rank() == 1, kOp, "expected labels [N], got ",
          labels.shape().ToString());
  Require(classes >= 1, kOp, "expected at least one class, got ", classes);
  const Tensor checked = CheckedIndex(kOp, labels, classes);
  Tensor out =
      Tensor::Empty({labels.numel(), classes}, {.device = labels.device()});
  KernelFor(out, cpu::OneHot, cuda::OneHot)(out, checked);
  return out;
}

}  // namespace baton::ops
