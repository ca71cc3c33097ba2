// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/sort.h"

#include "autograd/functions/function.h"
#include "core/ops/indexing.h"
#include "core/ops/sort.h"

namespace baton::autograd {
namespace {

// The gradient of each value flows to the position that the value came from.
ValuesAndIndices Moved(const char* op, const Variable& x, int axis,
                       const ops::ValuesAndIndices& result) {
  const Shape& shape = x.shape();
  const auto gradient = [shape, axis](const Backprop& p) {
    if (shape.rank() == 0 && p.dy().numel() == 1) return p.dy();
    const Tensor zeros = Tensor::Zeros(
        shape, {.dtype = p.dy().dtype(), .device = p.dy().device()});
    if (shape.rank() == 0) return zeros;  // k is 0
    return ops::Scatter(zeros, axis, p.saved(0), p.dy());
  };
  return {Record(op, result.values, {result.indices}, {{x, gradient}}),
          result.indices};
}

}  // namespace

ValuesAndIndices Sort(const Variable& x, int axis, bool descending) {
  return Moved("sort", x, axis, ops::Sort(x.tensor(), axis, descending));
}

ValuesAndIndices TopK(const Variable& x, int64_t k, int axis, bool largest) {
  return Moved("top_k", x, axis, ops::TopK(x.tensor(), k, axis, largest));
}

}  // namespace baton::autograd
