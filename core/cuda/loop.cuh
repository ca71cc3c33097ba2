// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "core/strided_loop.h"

// StridedLoop in a form for kernels.
namespace baton::cuda {

inline constexpr int kMapThreads = 256;
inline constexpr int kMaxDims = 8;
// The numbers of a launch's elements fit 31 bits; larger tensors take several
// launches.
inline constexpr int64_t kMaxElements = int64_t{1} << 30;

// Divides numbers below 2^31 by a fixed one, without a division: Granlund,
// Montgomery, "Division by invariant integers using multiplication", 1994.
struct Divider {
  uint32_t divisor = 1;
  uint32_t factor = 1;
  uint32_t shift = 0;

  Divider() = default;
  explicit Divider(uint32_t d)
      : divisor(d), shift(static_cast<uint32_t>(std::bit_width(d - 1))) {
    const uint64_t power = uint64_t{1} << shift;
    factor = static_cast<uint32_t>(((power - d) << 32) / d + 1);
  }
  __device__ __forceinline__ uint32_t Quotient(uint32_t n) const {
    return (__umulhi(n, factor) + n) >> shift;
  }
};

// A loop over packs of elements along the innermost dim, as a kernel's
// argument. Dims are numbered from the innermost.
template <int N>
struct LoopArgs {
  uint32_t packs = 0;
  uint32_t tail = 0;  // elements after the last pack; only in flat loops
  int rank = 1;
  Divider sizes[kMaxDims];       // [0] in packs
  int64_t strides[N][kMaxDims];  // in elements

  LoopArgs(const StridedLoop<N>& loop, int pack) {
    rank = static_cast<int>(loop.sizes.size());
    packs = static_cast<uint32_t>(loop.numel / pack);
    tail = static_cast<uint32_t>(loop.numel % pack);
    for (int d = 0; d < rank; ++d) {
      const auto from = static_cast<size_t>(rank - 1 - d);
      const int64_t size = d == 0 ? loop.sizes[from] / pack : loop.sizes[from];
      sizes[d] = Divider(static_cast<uint32_t>(size > 0 ? size : 1));
      for (size_t i = 0; i < N; ++i) strides[i][d] = loop.strides[i][from];
    }
  }

  template <int kPack>
  __device__ __forceinline__ void Offsets(uint32_t pack,
                                          int64_t (&offsets)[N]) const {
    uint32_t rest = rank == 1 ? 0 : sizes[0].Quotient(pack);
    const int64_t element = int64_t{pack - rest * sizes[0].divisor} * kPack;
#pragma unroll
    for (int i = 0; i < N; ++i) offsets[i] = element * strides[i][0];
#pragma unroll
    for (int d = 1; d < kMaxDims; ++d) {
      if (d >= rank) break;
      const uint32_t quotient = sizes[d].Quotient(rest);
      const int64_t at = rest - quotient * sizes[d].divisor;
      rest = quotient;
#pragma unroll
      for (int i = 0; i < N; ++i) offsets[i] += at * strides[i][d];
    }
  }

  __device__ __forceinline__ void TailOffsets(int pack, uint32_t at,
                                              int64_t (&offsets)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      offsets[i] = (int64_t{packs} * pack + at) * strides[i][0];
    }
  }
};

// Returns whether packs of elements tile the rows of all operands: the first
// must be dense, the others dense or one repeated element.
template <size_t N>
bool RowsFitPacks(const StridedLoop<N>& loop, int64_t pack) {
  if (loop.inner_stride(0) != 1) return false;
  if (!loop.flat() && loop.inner_size() % pack != 0) return false;
  for (size_t i = 0; i < N; ++i) {
    if (loop.inner_stride(i) == 0) continue;
    if (loop.inner_stride(i) != 1) return false;
    for (size_t d = 0; d + 1 < loop.sizes.size(); ++d) {
      if (loop.strides[i][d] % pack != 0) return false;
    }
  }
  return true;
}

// Calls body(part, offsets) for parts of the loop that fit a launch; the
// operands' parts begin at `offsets`, in elements.
template <size_t N, typename Body>
void ForEachPart(const StridedLoop<N>& loop,
                 const std::array<int64_t, N>& offsets, const Body& body) {
  if (loop.numel <= kMaxElements && loop.sizes.size() <= kMaxDims) {
    return body(loop, offsets);
  }
  const int64_t size = loop.sizes[0];
  const bool drop = loop.sizes.size() > kMaxDims || size == 1;
  const int64_t piece = drop ? 1 : (size + 1) / 2;
  for (int64_t begin = 0; begin < size; begin += piece) {
    StridedLoop<N> part = loop;
    std::array<int64_t, N> starts = offsets;
    const int64_t extent = std::min(piece, size - begin);
    part.sizes[0] = extent;
    part.numel = loop.numel / size * extent;
    for (size_t i = 0; i < N; ++i) {
      starts[i] += begin * loop.strides[i][0];
      if (drop) part.strides[i].erase(part.strides[i].begin());
    }
    if (drop) part.sizes.erase(part.sizes.begin());
    ForEachPart(part, starts, body);
  }
}

}  // namespace baton::cuda
