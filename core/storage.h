// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/device.h"
#include "core/mutex.h"
#include "core/stream_use.h"

namespace baton {

class PendingRead;

// A block of bytes on one device, shared by the tensors that view it. The
// version counts in-place writes: autograd and caches of packed weights compare
// it. Thread-compatible; versions and pending reads are thread-safe.
class Storage {
 public:
  // Returns uninitialized memory, 64-byte aligned, from the device's caching
  // allocator. If there is none, throws Error(ResourceExhausted), which names
  // the size.
  static std::shared_ptr<Storage> Allocate(size_t bytes, Device device);
  // Returns CPU memory that GPUs can copy to and from directly; needs CUDA.
  static std::shared_ptr<Storage> AllocatePinned(size_t bytes);
  // Wraps memory owned elsewhere; `release` runs when the last tensor is gone.
  static std::shared_ptr<Storage> Wrap(void* data, size_t bytes, Device device,
                                       std::function<void()> release);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint64_t id() const { return id_; }  // never reused within the process
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  void BumpVersion() { version_.fetch_add(1, std::memory_order_acq_rel); }
  // Call this before elements are written in place: pending reads of the
  // present elements (core/pending_read.h) continue with a copy, which is made
  // here. Without such reads it costs one atomic load. Throws
  // Error(ResourceExhausted) if there is no memory for the copy, and
  // Error(DeadlineExceeded) if a pin is held for a minute.
  void PrepareWrite() {
    if (pending_reads_.load(std::memory_order_acquire) != 0) MoveReads();
  }
  // The streams that use GPU or pinned memory; null for other CPU memory.
  const std::shared_ptr<StreamUse>& use() const { return use_; }

 private:
  Storage(void* data, size_t bytes, Device device,
          std::function<void()> release, std::shared_ptr<StreamUse> use);

  // Pending reads (pending_read.cc).
  friend class PendingRead;
  void BeginRead(PendingRead* read);
  void EndRead(PendingRead* read);
  void MoveReads();
  void CountReadsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(reads_mutex_);

  void* const data_;
  const size_t bytes_;
  const Device device_;
  const uint64_t id_;
  std::atomic<uint64_t> version_{0};
  const std::shared_ptr<StreamUse> use_;
  std::function<void()> release_;

  Mutex reads_mutex_;
  std::vector<PendingRead*> reads_ ABSL_GUARDED_BY(reads_mutex_);
  // Reads moved to copies, while they are still pinned here.
  std::vector<std::shared_ptr<const OutsideRead>> moved_reads_
      ABSL_GUARDED_BY(reads_mutex_);
  std::atomic<size_t> pending_reads_{0};  // number of reads in both lists
};

// The bytes of a device's tensors now and at their peak, and the bytes that the
// allocator keeps for reuse.
struct MemoryStats {
  size_t live_bytes = 0;
  size_t peak_bytes = 0;
  size_t cached_bytes = 0;
};
MemoryStats CpuMemoryStats();
// Gives the memory that is kept for reuse back to the system. Thread-safe.
void ReleaseCachedCpuMemory();

// These do the same for a GPU. Its memory may be limited: an allocation that
// exceeds `bytes` in total, including cached memory, throws
// Error(ResourceExhausted); 0 removes the limit. Thread-safe.
MemoryStats GpuMemoryStats(Device device);
// Returns the bytes that this process can still allocate: what the device has
// free, by the limit, and what is kept for reuse.
size_t FreeGpuMemory(Device device);
void ResetPeakGpuMemory(Device device);
void SetGpuMemoryLimit(Device device, size_t bytes);
void ReleaseCachedGpuMemory(Device device);

}  // namespace baton
