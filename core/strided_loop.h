// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>

#include "core/shape.h"

namespace baton {

// A loop nest with as few dimensions as the strides allow: extents of 1 are
// dropped, dimensions are ordered by the strides of operand 0 (the output), and
// adjacent ones are merged.
template <size_t N>
struct StridedLoop {
  Dims sizes;                     // outermost first; never empty
  std::array<Dims, N> strides{};  // of the operands, in elements
  int64_t numel = 0;

  StridedLoop(const Shape& shape, const std::array<const Dims*, N>& operands)
      : numel(shape.numel()) {
    if (numel == 0 || SameDense(shape, operands)) {
      sizes.push_back(numel);
      for (Dims& dims : strides) dims.push_back(1);
      return;
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] != 1) Insert(static_cast<size_t>(axis), shape, operands);
    }
    Merge();
    if (sizes.empty()) {
      sizes.push_back(1);
      for (Dims& dims : strides) dims.push_back(0);
    }
  }

  int64_t inner_size() const { return sizes.back(); }
  int64_t inner_stride(size_t operand) const { return strides[operand].back(); }
  // Whether there is only one row.
  bool flat() const { return sizes.size() == 1; }

 private:
  // Whether all operands are row-major without gaps: the usual case, which has
  // a fast path.
  static bool SameDense(const Shape& shape,
                        const std::array<const Dims*, N>& operands) {
    int64_t expected = 1;
    for (size_t d = shape.dims().size(); d-- > 0;) {
      for (const Dims* dims : operands) {
        if ((*dims)[d] != expected) return false;
      }
      expected *= shape.dims()[d];
    }
    return true;
  }

  // Keeps dimensions sorted by descending strides, those of operand 0 first.
  void Insert(size_t axis, const Shape& shape,
              const std::array<const Dims*, N>& operands) {
    size_t at = sizes.size();
    while (at > 0 && Outer(axis, at - 1, operands)) --at;
    const auto offset = static_cast<std::ptrdiff_t>(at);
    sizes.insert(sizes.begin() + offset, shape.dims()[axis]);
    for (size_t i = 0; i < N; ++i) {
      strides[i].insert(strides[i].begin() + offset, (*operands[i])[axis]);
    }
  }

  // Whether `axis` belongs outside the dim already at `position`.
  bool Outer(size_t axis, size_t position,
             const std::array<const Dims*, N>& operands) const {
    for (size_t i = 0; i < N; ++i) {
      const int64_t mine = (*operands[i])[axis];
      const int64_t theirs = strides[i][position];
      if (mine != theirs) return mine > theirs;
    }
    return false;
  }

  void Merge() {
    size_t kept = 0;
    for (size_t d = 1; d < sizes.size(); ++d) {
      bool merge = true;
      for (const Dims& dims : strides) {
        merge &= dims[kept] == dims[d] * sizes[d];
      }
      if (!merge) ++kept;
      sizes[kept] = merge ? sizes[kept] * sizes[d] : sizes[d];
      for (Dims& dims : strides) dims[kept] = dims[d];
    }
    if (sizes.empty()) return;
    sizes.resize(kept + 1);
    for (Dims& dims : strides) dims.resize(kept + 1);
  }
};

}  // namespace baton
