// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/parallel.h"
#include "core/strided_loop.h"

// Loops over operands of one shape, each with its own strides.
namespace baton::cpu {

// The number of elements that are worth a thread of their own in cheap loops.
inline constexpr int64_t kGrain = 32768;

// Calls row(offsets, count) for each row (innermost dim) of elements [begin,
// end); `offsets` has one offset in elements for each operand.
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

// Calls WalkRows over everything, split among threads.
template <size_t N, typename Row>
void ForEachRow(const StridedLoop<N>& loop, int64_t grain, Row row) {
  ParallelFor(loop.numel, grain, [&](int64_t begin, int64_t end) {
    WalkRows(loop, begin, end, row);
  });
}

}  // namespace baton::cpu
