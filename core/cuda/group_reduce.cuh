// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/cuda/launch.h"

// Kernels that reduce rows give each row to a group of threads: a power of two
// up to a warp, or a whole block of kGroupThreads. The order in which values
// are combined depends only on the group's size.
namespace baton::cuda {

inline constexpr int kGroupThreads = 256;

// Returns the size of the group for `rows` rows of `units` loads each.
inline int GroupSize(const Launch& launch, int64_t rows, int64_t units) {
  const bool few_rows = rows <= int64_t{8} * launch.multiprocessors();
  if (units >= 1024 || (few_rows && units >= 128)) return kGroupThreads;
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(units / 2, 1));
  return static_cast<int>(std::min<uint64_t>(std::bit_ceil(wanted), 32));
}

inline int GroupBlocks(const Launch& launch, int64_t rows, int group) {
  return launch.Blocks(rows, kGroupThreads / group);
}

// Gets the `value` of another lane, word by word. All 32 lanes must call.
template <typename V, typename Shuffle>
__device__ __forceinline__ V ShuffleWords(const V& value, Shuffle shuffle) {
  static_assert(sizeof(V) % 4 == 0);
  uint32_t words[sizeof(V) / 4];
  __builtin_memcpy(words, &value, sizeof(V));
#pragma unroll
  for (uint32_t& word : words) word = shuffle(word);
  V result;
  __builtin_memcpy(&result, words, sizeof(V));
  return result;
}

// Combines the values of the thread's group with op; all its threads get the
// same result. All threads of the block must call, with the same `group`.
template <typename V, typename Op>
__device__ __forceinline__ V CombineGroup(V value, int group, Op op) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int width = min(group, 32);
  for (int distance = width / 2; distance > 0; distance /= 2) {
    value = op(value, ShuffleWords(value, [distance](uint32_t word) {
                 return __shfl_xor_sync(0xffffffffu, word, distance);
               }));
  }
  // op(a, b) and op(b, a) may differ in their last bit, so all use the first
  // lane's.
  const int first = lane & ~(width - 1);
  value = ShuffleWords(value, [first](uint32_t word) {
    return __shfl_sync(0xffffffffu, word, first);
  });
  if (group <= 32) return value;
  __shared__ V parts[kGroupThreads / 32];
  if (lane == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
#pragma unroll
  for (int warp = 1; warp < kGroupThreads / 32; ++warp) {
    value = op(value, parts[warp]);
  }
  __syncthreads();
  return value;
}

}  // namespace baton::cuda
