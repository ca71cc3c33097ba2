// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/device_allocator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/cuda/stream.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kGranule = 512;
constexpr size_t kSmallRequest = kMiB, kSmallSegment = 2 * kMiB;
constexpr size_t kMediumRequest = 10 * kMiB, kMediumSegment = 20 * kMiB;
constexpr size_t kLargeStep = 2 * kMiB;
// The bytes of one shelf that wait for other streams in a capture before its
// stream waits for them.
constexpr size_t kLag = 256 * kMiB;

size_t RoundUp(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

size_t SegmentBytes(size_t bytes) {
  if (bytes <= kSmallRequest) return kSmallSegment;
  if (bytes <= kMediumRequest) return kMediumSegment;
  return RoundUp(bytes, kLargeStep);
}

std::string Mebibytes(size_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / kMiB);
}

}  // namespace

void* DeviceAllocator::Allocate(size_t bytes, int stream, int pool) {
  const size_t wanted = RoundUp(std::max(bytes, kGranule), kGranule);
  const Shelf shelf{pool, stream, wanted <= kSmallRequest};
  MutexLock lock(mutex_);
  CollectLocked(false);
  Block* block = FindLocked(shelf, wanted);
  if (block == nullptr && pool != 0) {
    TakeOverLocked(shelf, wanted);
    block = FindLocked(shelf, wanted);
  }
  if (block == nullptr) block = NewSegmentLocked(shelf, wanted);
  SplitLocked(block, wanted);
  block->free = false;
  live_ += block->bytes;
  peak_ = std::max(peak_, live_);
  return block->data;
}

Block* DeviceAllocator::FindLocked(const Shelf& shelf, size_t bytes) {
  auto& blocks = shelves_[shelf];
  Block key{shelf, nullptr, bytes, {}};
  const auto found = blocks.lower_bound(&key);
  if (found == blocks.end()) return nullptr;
  Block* block = *found;
  blocks.erase(found);
  return block;
}

void* DeviceAllocator::TryMallocLocked(size_t bytes) {
  if (limit_ > 0 && held_ + bytes > limit_) return nullptr;
  const DeviceScope scope(device_);
  const RelaxedCapture relaxed;
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  Check("allocate", error);
  return data;
}

Block* DeviceAllocator::NewSegmentLocked(const Shelf& shelf, size_t bytes) {
  const size_t segment = SegmentBytes(bytes);
  void* data = TryMallocLocked(segment);
  if (data == nullptr && CurrentCapture() == nullptr) {
    CollectLocked(true);
    DropFreeSegmentsLocked(Pools::kAll);
    data = TryMallocLocked(segment);
  }
  if (data == nullptr) FailLocked(bytes);
  held_ += segment;
  auto block = std::make_unique<Block>(
      Block{shelf, static_cast<char*>(data), segment, {data, segment}});
  Block* raw = block.get();
  blocks_.emplace(data, std::move(block));
  return raw;
}

std::pair<size_t, size_t> DeviceAllocator::DeviceBytes() const {
  size_t available = 0, total = 0;
  const DeviceScope scope(device_);
  Check("memory_stats", cudaMemGetInfo(&available, &total));
  return {available, total};
}

void DeviceAllocator::FailLocked(size_t bytes) {
  const auto [available, total] = DeviceBytes();
  const std::string limit =
      limit_ > 0 ? absl::StrCat(" (limit ", Mebibytes(limit_), ")") : "";
  Fail("allocate",
       absl::StrCat("cuda:", device_, " is out of memory: wanted ",
                    Mebibytes(bytes), "; ", Mebibytes(live_),
                    " are in tensors and ", Mebibytes(held_ - live_), " cached",
                    limit, ", the device has ", Mebibytes(available),
                    " free of ", Mebibytes(total)),
       absl::StatusCode::kResourceExhausted);
}

void DeviceAllocator::SplitLocked(Block* block, size_t bytes) {
  const size_t rest = block->bytes - bytes;
  // The rest of a large block serves no small requests.
  if (rest < (block->shelf.small ? kGranule : kSmallRequest + 1)) return;
  auto tail =
      std::make_unique<Block>(Block{block->shelf, block->data + bytes, rest,
                                    block->segment, block, block->next});
  block->bytes = bytes;
  if (tail->next != nullptr) tail->next->previous = tail.get();
  block->next = tail.get();
  shelves_[tail->shelf].insert(tail.get());
  blocks_.emplace(tail->data, std::move(tail));
}

Block* DeviceAllocator::MergeLocked(Block* left, Block* right) {
  left->bytes += right->bytes;
  left->next = right->next;
  if (left->next != nullptr) left->next->previous = left;
  blocks_.erase(right->data);
  return left;
}

void DeviceAllocator::ShelveLocked(Block* block) {
  block->free = true;
  auto& shelf = shelves_[block->shelf];
  if (Block* left = block->previous; left != nullptr && left->free) {
    shelf.erase(left);
    block = MergeLocked(left, block);
  }
  if (Block* right = block->next; right != nullptr && right->free) {
    shelf.erase(right);
    block = MergeLocked(block, right);
  }
  shelf.insert(block);
  DropIfDeadLocked(block);
}

// Returns whether a free block is a whole segment that nobody holds.
bool DeviceAllocator::IsWholeLocked(const Block& block) const {
  return block.previous == nullptr && block.next == nullptr &&
         held_by_.count(block.data) == 0;
}

void DeviceAllocator::DropIfDeadLocked(Block* block) {
  if (dead_pools_.count(block->shelf.pool) > 0 && IsWholeLocked(*block) &&
      CurrentCapture() == nullptr)
    DropSegmentLocked(block);
}

void DeviceAllocator::DropSegmentLocked(Block* whole) {
  shelves_[whole->shelf].erase(whole);
  held_ -= whole->bytes;
  {
    const DeviceScope scope(device_);
    Check("free", cudaFree(whole->data));
  }
  blocks_.erase(whole->data);
}

// A recording would not survive cudaFree, so what it frees stays until its end.
// A live graph also replays into the free blocks of its pool, so these stay,
// too.
void DeviceAllocator::DropFreeSegmentsLocked(Pools pools) {
  if (CurrentCapture() != nullptr) return;
  std::vector<Block*> whole;
  for (const auto& [shelf, blocks] : shelves_) {
    const bool dropped = shelf.pool == 0 ? pools == Pools::kAll
                                         : dead_pools_.count(shelf.pool) > 0;
    if (!dropped) continue;
    for (Block* block : blocks) {
      if (IsWholeLocked(*block)) whole.push_back(block);
    }
  }
  for (Block* block : whole) DropSegmentLocked(block);
}

void DeviceAllocator::Free(void* data, const std::vector<Stream>& guests) {
  const CaptureLog* capture = CurrentCapture();
  MutexLock lock(mutex_);
  Pending pending{blocks_.at(data).get(), {}, capture ? capture->pool : 0};
  for (const Stream& guest : guests) {
    const DeviceScope scope(guest.device().index());
    cudaEvent_t event = nullptr;
    Check("free", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    Check("free", cudaEventRecord(event, NativeStream(guest)));
    pending.events.push_back(event);
  }
  if (guests.empty()) {
    ShelvePendingLocked(pending);
  } else {
    pending_.push_back(std::move(pending));
  }
}

void DeviceAllocator::ShelvePendingLocked(const Pending& pending) {
  for (cudaEvent_t event : pending.events) cudaEventDestroy(event);
  live_ -= pending.block->bytes;
  ShelveLocked(pending.block);
}

// Shelves the blocks whose work has ended; with `wait`, waits for all of them.
void DeviceAllocator::CollectLocked(bool wait) {
  if (pending_.empty() || CurrentCapture() != nullptr) return;
  const auto has_ended = [wait](cudaEvent_t event) {
    if (wait) Check("free", cudaEventSynchronize(event));
    const cudaError_t error = cudaEventQuery(event);
    if (error != cudaErrorNotReady) Check("free", error);
    return error == cudaSuccess;
  };
  std::erase_if(pending_,
                [&](const Pending& pending)
                    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                      if (pending.capture != 0 ||
                          !std::all_of(pending.events.begin(),
                                       pending.events.end(), has_ended))
                        return false;
                      ShelvePendingLocked(pending);
                      return true;
                    });
}

// In a capture the host cannot ask whether work has ended, but the shelf's
// stream can wait for it. It waits for the blocks that were freed longest ago,
// and only if more than kLag bytes wait: an early wait would serialise work
// that could have run concurrently.
void DeviceAllocator::TakeOverLocked(const Shelf& shelf, size_t bytes) {
  size_t waiting = 0;
  for (const Pending& pending : pending_) {
    if (pending.block->shelf == shelf) waiting += pending.block->bytes;
  }
  auto* const stream =
      static_cast<cudaStream_t>(StreamHandle(device_, shelf.stream));
  std::erase_if(
      pending_,
      [&](const Pending& pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        if (pending.block->shelf != shelf || pending.capture != shelf.pool ||
            waiting + bytes <= kLag)
          return false;
        waiting -= pending.block->bytes;
        for (cudaEvent_t event : pending.events)
          Check("allocate", cudaStreamWaitEvent(stream, event, 0));
        ShelvePendingLocked(pending);
        return true;
      });
}

void DeviceAllocator::EndCapture(int pool) {
  MutexLock lock(mutex_);
  std::erase_if(pending_, [&](const Pending& pending)
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                if (pending.capture != pool) return false;
                                ShelvePendingLocked(pending);
                                return true;
                              });
  DropFreeSegmentsLocked(Pools::kDead);
}

Segment DeviceAllocator::SegmentOf(const void* data) {
  MutexLock lock(mutex_);
  const auto found = blocks_.find(data);
  if (found == blocks_.end()) return {};
  return found->second->segment;
}

void DeviceAllocator::Hold(void* base) {
  MutexLock lock(mutex_);
  ++held_by_[base];
}

void DeviceAllocator::Unhold(void* base) {
  MutexLock lock(mutex_);
  const auto held = held_by_.find(base);
  if (held == held_by_.end() || --held->second > 0) return;
  held_by_.erase(held);
  Block* first = blocks_.at(base).get();
  if (first->free) DropIfDeadLocked(first);
}

MemoryStats DeviceAllocator::Stats() {
  MutexLock lock(mutex_);
  return {
      .live_bytes = live_, .peak_bytes = peak_, .cached_bytes = held_ - live_};
}

size_t DeviceAllocator::FreeBytes() {
  const size_t available = DeviceBytes().first;
  MutexLock lock(mutex_);
  const size_t cached = held_ - live_;
  if (limit_ == 0) return available + cached;
  return std::min(available, limit_ - std::min(limit_, held_)) + cached;
}

void DeviceAllocator::ResetPeak() {
  MutexLock lock(mutex_);
  peak_ = live_;
}

void DeviceAllocator::SetLimit(size_t bytes) {
  MutexLock lock(mutex_);
  limit_ = bytes;
}

void DeviceAllocator::ReleaseCached() {
  MutexLock lock(mutex_);
  CollectLocked(true);
  DropFreeSegmentsLocked(Pools::kAll);
}

void DeviceAllocator::ReleasePool(int pool) {
  MutexLock lock(mutex_);
  dead_pools_.insert(pool);
  DropFreeSegmentsLocked(Pools::kDead);
}

}  // namespace baton::cuda
