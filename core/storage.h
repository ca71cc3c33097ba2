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
  // Uninitialised, 64-byte aligned, from the device's caching allocator; throws
  // Error(ResourceExhausted) naming the size.
  static std::shared_ptr<Storage> Allocate(size_t bytes, Device device);
  // CPU memory that GPUs copy to and from by themselves; needs CUDA.
  static std::shared_ptr<Storage> AllocatePinned(size_t bytes);
  // Memory owned elsewhere; `release` runs when the last tensor lets go.
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
  // To be called before elements are written in place: what is still to read
  // them as they are (core/pending_read.h) reads a copy from then on, which is
  // made here. Costs an atomic load where there is no such read. Throws
  // Error(ResourceExhausted) where there is no memory for the copy, and
  // Error(DeadlineExceeded) if a pin is held for a minute.
  void PrepareWrite() {
    if (pending_reads_.load(std::memory_order_acquire) != 0) MoveReads();
  }
  // Which streams use it: of GPU and of pinned memory; null for the CPU's own.
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
  // To copies, while they are pinned here.
  std::vector<std::shared_ptr<const OutsideRead>> moved_reads_
      ABSL_GUARDED_BY(reads_mutex_);
  std::atomic<size_t> pending_reads_{0};  // of both
};

// Bytes of a device's tensors alive now and at most so far, and what the
// allocator keeps for reuse.
struct MemoryStats {
  size_t live_bytes = 0;
  size_t peak_bytes = 0;
  size_t cached_bytes = 0;
};
MemoryStats CpuMemoryStats();
// Gives what is kept for reuse back to the system. Thread-safe.
void ReleaseCachedCpuMemory();

// The same of a GPU, whose memory may be bounded: an allocation beyond `bytes`
// in all, what is cached included, throws Error(ResourceExhausted); 0 lifts the
// bound. Thread-safe.
MemoryStats GpuMemoryStats(Device device);
void ResetPeakGpuMemory(Device device);
void SetGpuMemoryLimit(Device device, size_t bytes);
void ReleaseCachedGpuMemory(Device device);

}  // namespace baton
