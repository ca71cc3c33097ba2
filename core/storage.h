// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/device.h"

namespace baton {

// A block of bytes on one device, shared by the tensors that view it. The
// version counts in-place writes: autograd and caches of packed weights compare
// it. Thread-compatible; the version is atomic.
class Storage {
 public:
  // Uninitialised, 64-byte aligned, from the device's caching allocator; throws
  // Error(ResourceExhausted) naming the size.
  static std::shared_ptr<Storage> Allocate(size_t bytes, Device device);
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

 private:
  Storage(void* data, size_t bytes, Device device,
          std::function<void()> release);
  void* const data_;
  const size_t bytes_;
  const Device device_;
  const uint64_t id_;
  std::atomic<uint64_t> version_{0};
  std::function<void()> release_;
};

// Bytes of CPU tensors alive now and at most so far, and what the allocator
// keeps for reuse.
struct MemoryStats {
  size_t live_bytes = 0;
  size_t peak_bytes = 0;
  size_t cached_bytes = 0;
};
MemoryStats CpuMemoryStats();
// Gives what is kept for reuse back to the system. Thread-safe.
void ReleaseCachedCpuMemory();

}  // namespace baton
