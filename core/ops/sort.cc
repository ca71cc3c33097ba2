// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/sort.h"

#include "core/cpu/sort.h"
#include "core/cuda/sort.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

// Returns the first `count` elements of each line along `axis`, sorted; all of
// them if `count` is negative.
ValuesAndIndices Ordered(const char* op, const Tensor& x, int axis,
                         int64_t count, bool descending) {
  RequireOneDevice(op, x);
  if (x.rank() == 0) {
    const auto [values, indices] =
        Ordered(op, x.Reshape({1}), axis, count, descending);
    const Shape shape = values.numel() == 1 ? Shape() : values.shape();
    return {values.Reshape(shape), indices.Reshape(shape)};
  }
  const int at = NormalizeAxis(op, axis, x.rank());
  const Tensor from = x.Transpose(at, -1).Contiguous();
  const int64_t kept = count < 0 ? x.dim(at) : count;
  Require(kept <= x.dim(at), op, "k ", kept, " is more than axis ", axis,
          " of ", x.shape().ToString(), " has");
  Dims dims = from.shape().dims();
  dims.back() = kept;
  const Shape shape(dims);
  const Tensor values =
      Tensor::Empty(shape, {.dtype = x.dtype(), .device = x.device()});
  const Tensor indices =
      Tensor::Empty(shape, {.dtype = DType::kI64, .device = x.device()});
  KernelFor(x, cpu::Sort, cuda::Sort)(values, indices, from, descending);
  return {values.Transpose(at, -1).Contiguous(),
          indices.Transpose(at, -1).Contiguous()};
}

}  // namespace

ValuesAndIndices Sort(const Tensor& x, int axis, bool descending) {
  return Ordered("sort", x, axis, -1, descending);
}

Tensor ArgSort(const Tensor& x, int axis, bool descending) {
  return Ordered("argsort", x, axis, -1, descending).indices;
}

ValuesAndIndices TopK(const Tensor& x, int64_t k, int axis, bool largest) {
  Require(k >= 0, "top_k", "expected k >= 0, got ", k);
  return Ordered("top_k", x, axis, k, largest);
}

}  // namespace baton::ops
