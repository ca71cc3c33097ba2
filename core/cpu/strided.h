// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/parallel.h"
#include "core/shape.h"

// Loops over operands of one shape, each with strides of its own.
namespace baton::cpu {

// Elements that are worth a thread of their own in cheap loops.
inline constexpr int64_t kGrain = 32768;

// A loop nest with as few dims as the strides allow: extents of 1 dropped, dims
// ordered by the strides of operand 0 (the output), neighbours merged.
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
  // One row for everything.
  bool flat() const { return sizes.size() == 1; }

 private:
  // Whether all are row-major without gaps: the usual case, worth a short cut.
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

  // Keeps dims sorted by falling strides, operand 0's first.
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

// Walks the rows (innermost dim) of elements [begin, end):
// row(offsets, count), offsets in elements for each operand.
template <size_t N, typename Row>
void WalkRows(const StridedLoop<N>& loop, int64_t begin, int64_t end, Row row) {
  if (begin >= end) return;
  const size_t rank = loop.sizes.size();
  Dims at(rank, 0);
  std::array<int64_t, N> offsets{};
  int64_t rest = begin;
  for (size_t d = rank; d-- > 0;) {
    at[d] = rest % loop.sizes[d];
    rest /= loop.sizes[d];
    for (size_t i = 0; i < N; ++i) offsets[i] += at[d] * loop.strides[i][d];
  }
  while (begin < end) {
    const int64_t count =
        std::min(loop.sizes[rank - 1] - at[rank - 1], end - begin);
    row(offsets, count);
    begin += count;
    at[rank - 1] += count;
    for (size_t i = 0; i < N; ++i) {
      offsets[i] += count * loop.strides[i][rank - 1];
    }
    for (size_t d = rank - 1; d > 0 && at[d] == loop.sizes[d]; --d) {
      for (size_t i = 0; i < N; ++i) {
        offsets[i] += loop.strides[i][d - 1] - at[d] * loop.strides[i][d];
      }
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

// WalkRows over everything, split among threads.
template <size_t N, typename Row>
void ForEachRow(const StridedLoop<N>& loop, int64_t grain, Row row) {
  ParallelFor(loop.numel, grain, [&](int64_t begin, int64_t end) {
    WalkRows(loop, begin, end, row);
  });
}

}  // namespace baton::cpu
