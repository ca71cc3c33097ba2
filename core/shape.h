// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"

namespace baton {

using Dims = absl::InlinedVector<int64_t, 6>;

// The extents of a tensor, outermost first; a scalar has none. Value type.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(Dims dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  // Negative axes count from the back.
  int64_t operator[](int axis) const {
    return dims_[static_cast<size_t>(axis < 0 ? axis + rank() : axis)];
  }
  const Dims& dims() const { return dims_; }
  int64_t numel() const;
  std::string ToString() const;  // "[2, 3]"
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  Dims dims_;
};

// Returns row-major strides, in elements.
Dims ContiguousStrides(const Shape& shape);

// Applies NumPy's broadcasting rule; throws Error led by `op` if the shapes do
// not fit.
Shape BroadcastShapes(const char* op, const Shape& a, const Shape& b);

// Returns `axis` as a non-negative number; throws Error led by `op` if it is
// out of range.
int NormalizeAxis(const char* op, int axis, int rank);

}  // namespace baton
