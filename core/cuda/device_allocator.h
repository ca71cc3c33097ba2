// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cuda/allocator.h"
#include "core/cuda/memory.h"
#include "core/mutex.h"
#include "core/stream.h"

namespace baton::cuda {

// A kind of blocks: those of one shelf can replace each other.
struct Shelf {
  int pool;
  int stream;
  bool small;
  friend auto operator<=>(const Shelf&, const Shelf&) = default;
};

// A part of a segment. The blocks of a segment form a list in the order of
// their addresses.
struct Block {
  Shelf shelf;
  char* data;
  size_t bytes;
  Segment segment;
  Block* previous = nullptr;
  Block* next = nullptr;
  bool free = true;
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->bytes, a->data) < std::tie(b->bytes, b->data);
  }
};

// The caching allocator of one GPU (core/cuda/allocator.h). Thread-safe.
class DeviceAllocator {
 public:
  explicit DeviceAllocator(int device) : device_(device) {}

  void* Allocate(size_t bytes, int stream, int pool);
  void Free(void* data, const std::vector<Stream>& guests);
  Segment SegmentOf(const void* data);
  void Hold(void* base);
  void Unhold(void* base);
  MemoryStats Stats();
  size_t FreeBytes();
  void ResetPeak();
  void SetLimit(size_t bytes);
  void ReleaseCached();
  void EndCapture(int pool);
  void ReleasePool(int pool);

 private:
  // A block that waits until its guests' work has ended. Only streams of the
  // same capture can wait for the events of a capture, and nobody can once it
  // has ended.
  struct Pending {
    Block* block;
    std::vector<cudaEvent_t> events;
    int capture;  // its pool; 0: none
  };

  // The pools of graphs that are gone, or those and the common pool.
  enum class Pools { kDead, kAll };

  Block* FindLocked(const Shelf& shelf, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* NewSegmentLocked(const Shelf& shelf, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The device's free and whole memory.
  std::pair<size_t, size_t> DeviceBytes() const;
  void* TryMallocLocked(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[noreturn]] void FailLocked(size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SplitLocked(Block* block, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShelveLocked(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* MergeLocked(Block* left, Block* right)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropSegmentLocked(Block* whole) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropFreeSegmentsLocked(Pools pools)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsWholeLocked(const Block& block) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIfDeadLocked(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectLocked(bool wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeOverLocked(const Shelf& shelf, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShelvePendingLocked(const Pending& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int device_;
  Mutex mutex_;
  std::map<Shelf, std::set<Block*, BySize>> shelves_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<const void*, std::unique_ptr<Block>> blocks_
      ABSL_GUARDED_BY(mutex_);
  std::vector<Pending> pending_ ABSL_GUARDED_BY(mutex_);
  std::set<int> dead_pools_ ABSL_GUARDED_BY(mutex_);
  std::map<const void*, int> held_by_ ABSL_GUARDED_BY(mutex_);
  size_t live_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t peak_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes in segments
  size_t limit_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::cuda
