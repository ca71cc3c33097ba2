// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/shape.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/status.h"

namespace baton {

int64_t Shape::numel() const {
  int64_t product = 1;
  bool overflow = false;
  bool empty = false;
  for (int64_t dim : dims_) {
    // This runs often, so the text is only made for an error.
    if (dim < 0) Fail("shape", absl::StrCat("negative extent in ", ToString()));
    empty |= dim == 0;
    overflow |= __builtin_mul_overflow(product, dim, &product);
  }
  if (empty) return 0;
  if (overflow) {
    Fail("shape", absl::StrCat(ToString(), " has more than 2^63 elements"));
  }
  return product;
}

std::string Shape::ToString() const {
  return absl::StrCat("[", absl::StrJoin(dims_, ", "), "]");
}

Dims ContiguousStrides(const Shape& shape) {
  Dims strides(shape.dims().size(), 1);
  for (size_t d = strides.size(); d-- > 1;) {
    const int64_t dim = std::max<int64_t>(1, shape.dims()[d]);
    // This overflows only if some extent is 0; strides are then irrelevant.
    if (__builtin_mul_overflow(strides[d], dim, &strides[d - 1])) {
      strides[d - 1] = 1;
    }
  }
  return strides;
}

Shape BroadcastShapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  Dims dims(static_cast<size_t>(rank));
  for (int back = 1; back <= rank; ++back) {
    const int64_t x = back <= a.rank() ? a[-back] : 1;
    const int64_t y = back <= b.rank() ? b[-back] : 1;
    Require(x == y || x == 1 || y == 1, op, "shapes ", a.ToString(), " and ",
            b.ToString(), " do not broadcast");
    dims[static_cast<size_t>(rank - back)] = x == 1 ? y : x;
  }
  return Shape(std::move(dims));
}

int NormalizeAxis(const char* op, int axis, int rank) {
  Require(axis >= -rank && axis < rank, op, "axis ", axis,
          " is out of range for rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace baton
