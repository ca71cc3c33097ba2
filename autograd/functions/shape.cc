// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/shape.h"

#include "autograd/functions/function.h"
#include "core/ops/reduce.h"

namespace baton::autograd {
namespace {

Tensor ZerosLike(const Tensor& grad, const Shape& shape) {
  return Tensor::Zeros(shape, {.dtype = grad.dtype(), .device = grad.device()});
}

// Records an op that only gives the elements of x another shape.
Variable Reshaped(const char* op, const Variable& x, Tensor y) {
  const Shape& shape = x.shape();
  return Record(
      op, std::move(y), {},
      {{x, [shape](const Backprop& p) { return p.dy().Reshape(shape); }}});
}

}  // namespace

Variable Reshape(const Variable& x, const Shape& shape) {
  return Reshaped("reshape", x, x.tensor().Reshape(shape));
}

Variable Flatten(const Variable& x, int start_axis, int end_axis) {
  return Reshaped("flatten", x, x.tensor().Flatten(start_axis, end_axis));
}

Variable Unsqueeze(const Variable& x, int axis) {
  return Reshaped("unsqueeze", x, x.tensor().Unsqueeze(axis));
}

Variable Squeeze(const Variable& x, int axis) {
  return Reshaped("squeeze", x, x.tensor().Squeeze(axis));
}

Variable Transpose(const Variable& x, int axis_a, int axis_b) {
  return Record("transpose", x.tensor().Transpose(axis_a, axis_b), {},
                {{x, [=](const Backprop& p) {
                    return p.dy().Transpose(axis_a, axis_b);
                  }}});
}

Variable Permute(const Variable& x, const std::vector<int>& axes) {
  const Tensor y = x.tensor().Permute(axes);
  std::vector<int> inverse(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = NormalizeAxis("permute", axes[i], x.shape().rank());
    inverse[static_cast<size_t>(axis)] = static_cast<int>(i);
  }
  return Record(
      "permute", y, {},
      {{x, [inverse](const Backprop& p) { return p.dy().Permute(inverse); }}});
}

Variable Slice(const Variable& x, int axis, int64_t start, int64_t end,
               int64_t step) {
  const Shape& shape = x.shape();
  return Record("slice", x.tensor().Slice(axis, start, end, step), {},
                {{x, [=](const Backprop& p) {
                    Tensor dx = ZerosLike(p.dy(), shape);
                    dx.Slice(axis, start, end, step).CopyFrom(p.dy());
                    return dx;
                  }}});
}

Variable Select(const Variable& x, int axis, int64_t index) {
  const Shape& shape = x.shape();
  return Record("select", x.tensor().Select(axis, index), {},
                {{x, [=](const Backprop& p) {
                    Tensor dx = ZerosLike(p.dy(), shape);
                    dx.Select(axis, index).CopyFrom(p.dy());
                    return dx;
                  }}});
}

Variable Expand(const Variable& x, const Shape& shape) {
  const Shape& from = x.shape();
  return Record(
      "expand", x.tensor().Expand(shape), {},
      {{x, [from](const Backprop& p) { return ops::SumTo(p.dy(), from); }}});
}

std::vector<Variable> Split(const Variable& x, int64_t size, int axis) {
  const Tensors parts = x.tensor().Split(size, axis);
  const size_t count = parts.size();
  const Tensor& like = x.tensor();
  return RecordMany(
      "split", parts, {}, {x},
      [shape = x.shape(), dtype = like.dtype(), device = like.device(), count,
       size, axis](const Backprop& p) -> Tensors {
        const Tensor dx =
            Tensor::Empty(shape, {.dtype = dtype, .device = device});
        const Tensors slots = dx.Split(size, axis);
        for (size_t i = 0; i < count; ++i) {
          if (p.dy(i).defined()) {
            slots[i].CopyFrom(p.dy(i));
          } else {
            slots[i].Fill(0);
          }
        }
        return {dx};
      });
}

Variable Contiguous(const Variable& x, MemoryFormat format) {
  if (x.tensor().IsContiguous(format)) return x;
  return Record("contiguous", x.tensor().Contiguous(format), {},
                {{x, [](const Backprop& p) { return p.dy(); }}});
}

}  // namespace baton::autograd
