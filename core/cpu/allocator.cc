// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/allocator.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"

namespace baton::cpu {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSlack = size_t{64} << 20;
constexpr size_t kMaxBytes = size_t{1} << 46;
// Eight classes between powers of two waste at most an eighth.
constexpr int kSubClassBits = 3;
constexpr size_t kClasses = (64 << kSubClassBits);

struct SizeClass {
  size_t index;
  size_t bytes;
};

SizeClass ClassOf(size_t bytes) {
  bytes = std::max(bytes, kAlignment << kSubClassBits);
  const int top = std::bit_width(bytes) - 1;
  const int shift = top - kSubClassBits;
  const size_t step = size_t{1} << shift;
  const size_t steps = (bytes + step - 1) >> shift;  // 8..16
  return {(static_cast<size_t>(top) << kSubClassBits) + steps - 8,
          steps << shift};
}

void* MapBlock(size_t bytes) {
  if (bytes < kHugePage) return std::aligned_alloc(kAlignment, bytes);
  // Maps more and cuts it, so that the block begins at a huge page.
  const size_t mapped = bytes + kHugePage;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (start + kHugePage - 1) & ~(kHugePage - 1);
  if (aligned > start) munmap(raw, aligned - start);
  const size_t tail = start + mapped - (aligned + bytes);
  std::byte* const block = static_cast<std::byte*>(raw) + (aligned - start);
  if (tail > 0) munmap(block + bytes, tail);
  madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void UnmapBlock(void* block, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  if (bytes < kHugePage) {
    std::free(block);
  } else {
    munmap(block, bytes);
  }
}

class Cache {
 public:
  void* Take(const SizeClass& size, size_t requested) {
    MutexLock lock(mutex_);
    stats_.live_bytes += requested;
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
    List& list = lists_[size.index];
    list.block_bytes = size.bytes;
    list.last_use = ++clock_;
    if (list.blocks.empty()) return nullptr;
    void* block = list.blocks.back();
    list.blocks.pop_back();
    stats_.cached_bytes -= size.bytes;
    return block;
  }

  void Forget(size_t requested) {
    MutexLock lock(mutex_);
    stats_.live_bytes -= requested;
  }

  void Give(void* block, const SizeClass& size, size_t requested) {
    std::vector<Victim> victims;
    {
      MutexLock lock(mutex_);
      stats_.live_bytes -= requested;
      stats_.cached_bytes += size.bytes;
      lists_[size.index].blocks.push_back(block);
      TrimLocked(stats_.peak_bytes + stats_.peak_bytes / 4 + kSlack, victims);
    }
    Unmap(victims);
  }

  void Clear() {
    std::vector<Victim> victims;
    {
      MutexLock lock(mutex_);
      TrimLocked(0, victims);
    }
    Unmap(victims);
  }

  MemoryStats stats() {
    MutexLock lock(mutex_);
    return stats_;
  }

 private:
  struct List {
    std::vector<void*> blocks;
    size_t block_bytes = 0;
    uint64_t last_use = 0;
  };
  struct Victim {
    void* block;
    size_t bytes;
  };

  // Moves cached blocks out until live and cached bytes together fit `limit`.
  void TrimLocked(size_t limit, std::vector<Victim>& victims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (stats_.cached_bytes > 0 &&
           stats_.live_bytes + stats_.cached_bytes > limit) {
      List* oldest = nullptr;
      for (List& list : lists_) {
        if (list.blocks.empty()) continue;
        if (oldest == nullptr || list.last_use < oldest->last_use) {
          oldest = &list;
        }
      }
      victims.push_back({oldest->blocks.back(), oldest->block_bytes});
      oldest->blocks.pop_back();
      stats_.cached_bytes -= oldest->block_bytes;
    }
  }

  static void Unmap(const std::vector<Victim>& victims) {
    for (const Victim& victim : victims) UnmapBlock(victim.block, victim.bytes);
  }

  Mutex mutex_;
  std::array<List, kClasses> lists_ ABSL_GUARDED_BY(mutex_);
  MemoryStats stats_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
};

Cache& GlobalCache() {
  static Cache* cache = new Cache;  // leaked: tensors may die during exit
  return *cache;
}

[[noreturn]] void FailAllocation(size_t bytes) {
  Fail("allocate",
       absl::StrCat("no memory for ", bytes, " bytes (", Stats().live_bytes,
                    " bytes are in use)"),
       absl::StatusCode::kResourceExhausted);
}

}  // namespace

void* Allocate(size_t bytes) {
  if (bytes > kMaxBytes) FailAllocation(bytes);
  const SizeClass size = ClassOf(bytes);
  void* block = GlobalCache().Take(size, bytes);
  if (block == nullptr) block = MapBlock(size.bytes);
  if (block == nullptr) {
    ReleaseCached();
    block = MapBlock(size.bytes);
  }
  if (block == nullptr) {
    GlobalCache().Forget(bytes);
    FailAllocation(bytes);
  }
  // Cached blocks stay poisoned, and so does the part of a block that was not
  // requested: AddressSanitizer then sees what it would see with malloc.
  ASAN_POISON_MEMORY_REGION(block, size.bytes);
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

void Free(void* data, size_t bytes) {
  const SizeClass size = ClassOf(bytes);
  ASAN_POISON_MEMORY_REGION(data, size.bytes);
  GlobalCache().Give(data, size, bytes);
}

MemoryStats Stats() { return GlobalCache().stats(); }
void ReleaseCached() { GlobalCache().Clear(); }

}  // namespace baton::cpu
