// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/strided_loop.h"

namespace baton::cuda {

inline constexpr int kMaxAxes = 8;  // after StridedLoop's merging

// Divides 32-bit numbers if they suffice: a 64-bit division takes ten times as
// long.
__device__ __forceinline__ int64_t Quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) {
    return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  }
  return a / b;
}

// The positions of the elements of a StridedLoop in its N operands, as a
// kernel's argument. Axes are numbered from the innermost.
template <int N>
struct Offsets {
  int rank = 1;
  int64_t sizes[kMaxAxes] = {};
  int64_t strides[N][kMaxAxes] = {};

  Offsets(const char* op, const StridedLoop<N>& loop)
      : rank(static_cast<int>(loop.sizes.size())) {
    Require(rank <= kMaxAxes, op, "more than ", kMaxAxes,
            " axes that cannot be merged");
    for (int d = 0; d < rank; ++d) {
      const auto from = static_cast<size_t>(rank - 1 - d);
      sizes[d] = loop.sizes[from];
      for (size_t i = 0; i < N; ++i) strides[i][d] = loop.strides[i][from];
    }
  }

  // Computes the offsets, in elements, of element `index`.
  __device__ __forceinline__ void At(int64_t index,
                                     int64_t (&offsets)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) offsets[i] = 0;
#pragma unroll
    for (int d = 0; d < kMaxAxes; ++d) {
      const bool last = d + 1 >= rank;
      const int64_t rest = last ? 0 : Quotient(index, sizes[d]);
      const int64_t at = last ? index : index - rest * sizes[d];
#pragma unroll
      for (int i = 0; i < N; ++i) offsets[i] += at * strides[i][d];
      if (last) break;
      index = rest;
    }
  }
};

}  // namespace baton::cuda
