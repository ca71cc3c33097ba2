// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <optional>

#include "core/tensor.h"

namespace baton {
namespace {

Tensor View(const Tensor& t, Dims dims, const Dims& strides, int64_t offset) {
  return Tensor::FromStorage(t.storage(), t.dtype(), Shape(std::move(dims)),
                             strides, offset);
}

// Returns `shape` with -1 replaced by the extent that makes the numbers of
// elements equal.
Shape Resolve(const Shape& from, const Shape& shape) {
  int unknown = -1;
  Dims dims = shape.dims();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != -1) continue;
    Require(unknown < 0, "reshape", "more than one -1 in ", shape.ToString());
    unknown = axis;
    dims[static_cast<size_t>(axis)] = 1;
  }
  const int64_t known = Shape(dims).numel();
  if (unknown >= 0 && known > 0) {
    dims[static_cast<size_t>(unknown)] = from.numel() / known;
  }
  Shape resolved(std::move(dims));
  Require(resolved.numel() == from.numel() && (unknown < 0 || known > 0),
          "reshape", from.ToString(), " does not fit ", shape.ToString());
  return resolved;
}

// Returns strides with which `shape` views `t`, or nullopt. Walks both shapes
// from the back: each dense run of `t`'s axes is split into new axes.
std::optional<Dims> ViewStrides(const Tensor& t, const Shape& shape) {
  Dims strides(shape.dims().size(), 1);
  int64_t left = 1;  // elements of the current run that are not assigned yet
  int64_t step = 1;  // stride of the next new axis
  int axis = t.rank() - 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const auto at = static_cast<size_t>(d);
    if (shape[d] == 1) {
      strides[at] = step;
      continue;
    }
    while (left == 1) {
      while (t.dim(axis) == 1) --axis;
      left = t.dim(axis);
      step = t.strides()[static_cast<size_t>(axis--)];
    }
    while (left % shape[d] != 0) {
      while (axis >= 0 && t.dim(axis) == 1) --axis;
      if (axis < 0 || t.strides()[static_cast<size_t>(axis)] != step * left) {
        return std::nullopt;
      }
      left *= t.dim(axis--);
    }
    strides[at] = step;
    left /= shape[d];
    step *= shape[d];
  }
  return strides;
}

}  // namespace

Tensor Tensor::Reshape(const Shape& shape) const {
  const Shape resolved = Resolve(shape_, shape);
  if (numel() == 0 || IsContiguous()) {
    return View(*this, resolved.dims(), ContiguousStrides(resolved), offset_);
  }
  if (const auto strides = ViewStrides(*this, resolved)) {
    return View(*this, resolved.dims(), *strides, offset_);
  }
  return Contiguous().Reshape(resolved);
}

Tensor Tensor::Flatten(int start_axis, int end_axis) const {
  if (rank() == 0) return Reshape({1});
  const int start = NormalizeAxis("flatten", start_axis, rank());
  const int end = NormalizeAxis("flatten", end_axis, rank());
  Require(start <= end, "flatten", "axis ", start, " is behind axis ", end);
  Dims dims(shape_.begin(), shape_.begin() + start);
  Dims run(shape_.begin() + start, shape_.begin() + end + 1);
  dims.push_back(Shape(std::move(run)).numel());
  dims.insert(dims.end(), shape_.begin() + end + 1, shape_.end());
  return Reshape(Shape(std::move(dims)));
}

Tensor Tensor::Transpose(int axis_a, int axis_b) const {
  const auto a =
      static_cast<size_t>(NormalizeAxis("transpose", axis_a, rank()));
  const auto b =
      static_cast<size_t>(NormalizeAxis("transpose", axis_b, rank()));
  Dims dims = shape_.dims();
  Dims strides = strides_;
  std::swap(dims[a], dims[b]);
  std::swap(strides[a], strides[b]);
  return View(*this, std::move(dims), strides, offset_);
}

Tensor Tensor::Permute(const std::vector<int>& axes) const {
  Require(static_cast<int>(axes.size()) == rank(), "permute", axes.size(),
          " axes for ", shape_.ToString());
  Dims dims;
  Dims strides;
  std::vector<bool> seen(axes.size(), false);
  for (int axis : axes) {
    const auto at = static_cast<size_t>(NormalizeAxis("permute", axis, rank()));
    Require(!seen[at], "permute", "axis ", axis, " comes twice");
    seen[at] = true;
    dims.push_back(shape_.dims()[at]);
    strides.push_back(strides_[at]);
  }
  return View(*this, std::move(dims), strides, offset_);
}

Tensor Tensor::Slice(int axis, int64_t start, int64_t end, int64_t step) const {
  const int at = NormalizeAxis("slice", axis, rank());
  const int64_t size = shape_[at];
  Require(step >= 1, "slice", "step ", step, " is not positive");
  Require(start >= 0 && start <= end && end <= size, "slice", "[", start, ", ",
          end, ") is outside axis ", axis, " of ", shape_.ToString());
  const auto i = static_cast<size_t>(at);
  Dims dims = shape_.dims();
  Dims strides = strides_;
  dims[i] = (end - start) / step + ((end - start) % step != 0 ? 1 : 0);
  // A step beyond the axis selects one element; its stride must not overflow.
  strides[i] *= std::min(step, std::max<int64_t>(size, 1));
  const int64_t offset = dims[i] == 0 ? offset_ : offset_ + start * strides_[i];
  return View(*this, std::move(dims), strides, offset);
}

Tensor Tensor::Select(int axis, int64_t index) const {
  const int at = NormalizeAxis("select", axis, rank());
  const int64_t size = shape_[at];
  Require(index >= -size && index < size, "select", "index ", index,
          " is outside axis ", axis, " of ", shape_.ToString());
  const int64_t start = index < 0 ? index + size : index;
  Tensor slice = Slice(at, start, start + 1);
  return slice.Squeeze(at);
}

Tensor Tensor::Unsqueeze(int axis) const {
  const int at = NormalizeAxis("unsqueeze", axis, rank() + 1);
  Dims dims = shape_.dims();
  Dims strides = strides_;
  const int64_t stride =
      at < rank() ? shape_[at] * strides_[static_cast<size_t>(at)] : 1;
  dims.insert(dims.begin() + at, 1);
  strides.insert(strides.begin() + at, stride);
  return View(*this, std::move(dims), strides, offset_);
}

Tensor Tensor::Squeeze(int axis) const {
  const int at = NormalizeAxis("squeeze", axis, rank());
  Require(shape_[at] == 1, "squeeze", "axis ", axis, " of ", shape_.ToString(),
          " is not 1");
  Dims dims = shape_.dims();
  Dims strides = strides_;
  dims.erase(dims.begin() + at);
  strides.erase(strides.begin() + at);
  return View(*this, std::move(dims), strides, offset_);
}

Tensor Tensor::Expand(const Shape& shape) const {
  if (shape == shape_) return *this;
  const int added = shape.rank() - rank();
  Require(added >= 0, "expand", shape_.ToString(), " does not expand to ",
          shape.ToString());
  Dims strides(shape.dims().size(), 0);
  for (int axis = 0; axis < rank(); ++axis) {
    const int to = axis + added;
    const bool same = shape_[axis] == shape[to];
    Require(same || shape_[axis] == 1, "expand", shape_.ToString(),
            " does not expand to ", shape.ToString());
    strides[static_cast<size_t>(to)] =
        same ? strides_[static_cast<size_t>(axis)] : 0;
  }
  return View(*this, shape.dims(), strides, offset_);
}

std::vector<Tensor> Tensor::Split(int64_t size, int axis) const {
  const int at = NormalizeAxis("split", axis, rank());
  Require(size >= 1, "split", "size ", size, " is not positive");
  std::vector<Tensor> parts;
  int64_t start = 0;
  do {
    const int64_t end = start + std::min(size, shape_[at] - start);
    parts.push_back(Slice(at, start, end));
    start = end;
  } while (start < shape_[at]);
  return parts;
}

}  // namespace baton
