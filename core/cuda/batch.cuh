// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

// Runs one launch for many tensors. The kernel's parameters contain an entry
// for each tensor, so that nothing must be copied to the GPU first and a graph
// can record the launch.
namespace baton::cuda {

inline constexpr int kBatchThreads = 256;
// The number of elements of one tensor that a block processes.
inline constexpr int64_t kBatchChunk = 4096;
// The parameter bytes of a launch: that every GPU accepts, and that recent ones
// do.
inline constexpr size_t kFewBytes = 3800;
inline constexpr size_t kManyBytes = 32000;

// Entry has a member `numel`, the number of the tensor's elements.
template <typename Entry, size_t kBytes>
struct Batch {
  static constexpr int kCapacity =
      static_cast<int>((kBytes - 8) / (sizeof(Entry) + sizeof(uint32_t)));

  int count;
  uint32_t first_block[kCapacity + 1];
  Entry entries[kCapacity];
};

// The work of one block: elements [begin, end) of an entry.
struct Chunk {
  int entry;
  int64_t begin, end;
};

template <typename Batch>
__device__ __forceinline__ Chunk ChunkOfBlock(const Batch& batch) {
  int low = 0;
  int high = batch.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (batch.first_block[middle] <= blockIdx.x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const int64_t begin =
      int64_t{blockIdx.x - batch.first_block[low]} * kBatchChunk;
  const int64_t end = begin + kBatchChunk;
  const int64_t numel = batch.entries[low].numel;
  return {low, begin, end < numel ? end : numel};
}

// Calls launch(batch, blocks, index of the first entry) for as few batches as
// hold all entries.
template <size_t kBytes, typename Entry, typename LaunchBatch>
void LaunchBatches(const std::vector<Entry>& entries, LaunchBatch launch) {
  using B = Batch<Entry, kBytes>;
  for (size_t begin = 0; begin < entries.size(); begin += B::kCapacity) {
    B batch;
    batch.count = static_cast<int>(
        std::min<size_t>(B::kCapacity, entries.size() - begin));
    uint32_t blocks = 0;
    for (int i = 0; i < batch.count; ++i) {
      batch.entries[i] = entries[begin + static_cast<size_t>(i)];
      batch.first_block[i] = blocks;
      blocks += static_cast<uint32_t>(
          (batch.entries[i].numel + kBatchChunk - 1) / kBatchChunk);
    }
    if (blocks > 0) launch(batch, blocks, begin);
  }
}

template <typename Entry, typename LaunchBatch>
void ForEachBatch(const std::vector<Entry>& entries, LaunchBatch launch) {
  if (entries.size() <= Batch<Entry, kFewBytes>::kCapacity) {
    LaunchBatches<kFewBytes>(entries, launch);
  } else {
    LaunchBatches<kManyBytes>(entries, launch);
  }
}

}  // namespace baton::cuda
