// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/reduce.h"

#include <numeric>

#include "core/cpu/reduce.h"
#include "core/cuda/reduce.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

std::vector<bool> MarkAxes(const char* op, const std::vector<int>& axes,
                           int rank) {
  std::vector<bool> marked(static_cast<size_t>(rank), false);
  for (int axis : axes) {
    const auto at = static_cast<size_t>(NormalizeAxis(op, axis, rank));
    Require(!marked[at], op, "axis ", axis, " comes twice");
    marked[at] = true;
  }
  return marked;
}

// Returns the shape with extent 1 for each marked axis, or without these axes.
Shape ReducedShape(const Shape& shape, const std::vector<bool>& reduced,
                   bool keep_dims) {
  Dims dims;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d]) {
      dims.push_back(shape.dims()[d]);
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  return Shape(std::move(dims));
}

Tensor SumMarked(const Tensor& x, const std::vector<bool>& reduced,
                 bool keep_dims, double factor) {
  const DType dtype = IsFloating(x.dtype()) ? x.dtype() : DType::kI64;
  const Tensor out = Tensor::Empty(ReducedShape(x.shape(), reduced, true),
                                   {.dtype = dtype, .device = x.device()});
  KernelFor(x, cpu::SumAxes, cuda::SumAxes)(out, x, reduced, factor);
  return keep_dims ? out : out.Reshape(ReducedShape(x.shape(), reduced, false));
}

std::vector<int> AllAxes(const Tensor& x) {
  std::vector<int> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

ValuesAndIndices FindExtremes(const char* op, Extreme extreme, const Tensor& x,
                              int axis, bool keep_dims) {
  RequireOneDevice(op, x);
  const int at = NormalizeAxis(op, axis, x.rank());
  Require(x.dim(at) > 0, op, "axis ", axis, " of ", x.shape().ToString(),
          " is empty");
  const auto reduced = MarkAxes(op, {at}, x.rank());
  const Shape shape = ReducedShape(x.shape(), reduced, true);
  const Tensor values =
      Tensor::Empty(shape, {.dtype = x.dtype(), .device = x.device()});
  const Tensor indices =
      Tensor::Empty(shape, {.dtype = DType::kI64, .device = x.device()});
  KernelFor(x, cpu::FindExtremes, cuda::FindExtremes)(extreme, values, indices,
                                                      x, at);
  if (keep_dims) return {values, indices};
  return {values.Squeeze(at), indices.Squeeze(at)};
}

}  // namespace

Tensor Sum(const Tensor& x) {
  RequireOneDevice("sum", x);
  return Sum(x, AllAxes(x));
}

Tensor Sum(const Tensor& x, const std::vector<int>& axes, bool keep_dims) {
  RequireOneDevice("sum", x);
  return SumMarked(x, MarkAxes("sum", axes, x.rank()), keep_dims, 1);
}

Tensor Mean(const Tensor& x) {
  RequireOneDevice("mean", x);
  return Mean(x, AllAxes(x));
}

Tensor Mean(const Tensor& x, const std::vector<int>& axes, bool keep_dims) {
  RequireOneDevice("mean", x);
  RequireFloating("mean", x);
  const auto reduced = MarkAxes("mean", axes, x.rank());
  double count = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (reduced[static_cast<size_t>(axis)]) {
      count *= static_cast<double>(x.dim(axis));
    }
  }
  return SumMarked(x, reduced, keep_dims, 1 / count);
}

ValuesAndIndices Max(const Tensor& x, int axis, bool keep_dims) {
  return FindExtremes("max", Extreme::kMax, x, axis, keep_dims);
}

ValuesAndIndices Min(const Tensor& x, int axis, bool keep_dims) {
  return FindExtremes("min", Extreme::kMin, x, axis, keep_dims);
}

Tensor ArgMax(const Tensor& x, int axis, bool keep_dims) {
  return FindExtremes("argmax", Extreme::kMax, x, axis, keep_dims).indices;
}

Tensor SumTo(const Tensor& x, const Shape& shape) {
  constexpr char kOp[] = "sum_to";
  RequireOneDevice(kOp, x);
  if (x.shape() == shape) return x;
  Require(shape.rank() <= x.rank() &&
              BroadcastShapes(kOp, x.shape(), shape) == x.shape(),
          kOp, shape.ToString(), " does not broadcast to ",
          x.shape().ToString());
  const int added = x.rank() - shape.rank();
  std::vector<bool> reduced;
  for (int axis = 0; axis < x.rank(); ++axis) {
    reduced.push_back(axis < added || shape[axis - added] != x.dim(axis));
  }
  return SumMarked(x, reduced, true, 1).To(x.dtype()).Reshape(shape);
}

}  // namespace baton::ops
