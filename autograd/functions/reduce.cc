// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/reduce.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"

namespace baton::autograd {
namespace {

// Returns `shape` with extent 1 at `axes`.
Shape KeepDims(const char* op, const Shape& shape,
               const std::vector<int>& axes) {
  Dims dims = shape.dims();
  for (int axis : axes)
    dims[static_cast<size_t>(NormalizeAxis(op, axis, shape.rank()))] = 1;
  return Shape(dims);
}

// Returns the formula for the gradient of a sum times `scale`: dy, broadcast to
// `shape`.
Formula Spread(const Shape& shape, const Shape& kept, double scale) {
  return [=](const Backprop& p) {
    const Tensor dy = scale == 1 ? p.dy() : ops::MulScalar(p.dy(), scale);
    return dy.Reshape(kept).Expand(shape);
  };
}

ValuesAndIndices Extremum(const char* op, const Variable& x, int axis,
                          ops::ValuesAndIndices result) {
  const Shape& shape = x.shape();
  const Shape kept = KeepDims(op, shape, {axis});
  const Variable values = Record(
      op, result.values, {result.indices},
      {{x, [=](const Backprop& p) {
          const Tensor zeros = Tensor::Zeros(
              shape, {.dtype = p.dy().dtype(), .device = p.dy().device()});
          return ops::ScatterAdd(zeros, axis, p.saved(0).Reshape(kept),
                                 p.dy().Reshape(kept));
        }}});
  return {values, result.indices};
}

}  // namespace

Variable Sum(const Variable& given) {
  const Variable x = InF32(given);
  const Shape kept(Dims(static_cast<size_t>(x.shape().rank()), 1));
  return Record("sum", ops::Sum(x.tensor()), {},
                {{x, Spread(x.shape(), kept, 1)}});
}

Variable Sum(const Variable& given, const std::vector<int>& axes,
             bool keep_dims) {
  const Variable x = InF32(given);
  return Record("sum", ops::Sum(x.tensor(), axes, keep_dims), {},
                {{x, Spread(x.shape(), KeepDims("sum", x.shape(), axes), 1)}});
}

Variable Mean(const Variable& given) {
  const Variable x = InF32(given);
  const Shape kept(Dims(static_cast<size_t>(x.shape().rank()), 1));
  const double share = 1 / static_cast<double>(x.shape().numel());
  return Record("mean", ops::Mean(x.tensor()), {},
                {{x, Spread(x.shape(), kept, share)}});
}

Variable Mean(const Variable& given, const std::vector<int>& axes,
              bool keep_dims) {
  const Variable x = InF32(given);
  const Shape kept = KeepDims("mean", x.shape(), axes);
  const double share = static_cast<double>(kept.numel()) /
                       static_cast<double>(x.shape().numel());
  return Record("mean", ops::Mean(x.tensor(), axes, keep_dims), {},
                {{x, Spread(x.shape(), kept, share)}});
}

ValuesAndIndices Max(const Variable& x, int axis, bool keep_dims) {
  return Extremum("max", x, axis, ops::Max(x.tensor(), axis, keep_dims));
}

ValuesAndIndices Min(const Variable& x, int axis, bool keep_dims) {
  return Extremum("min", x, axis, ops::Min(x.tensor(), axis, keep_dims));
}

}  // namespace baton::autograd
