// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/storage.h"

#include <utility>

#include "core/cpu/allocator.h"
#include "core/cuda/memory.h"

namespace baton {
namespace {
std::atomic<uint64_t> next_id{1};
}  // namespace

Storage::Storage(void* data, size_t bytes, Device device,
                 std::function<void()> release)
    : data_(data),
      bytes_(bytes),
      device_(device),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      release_(std::move(release)) {}

Storage::~Storage() {
  if (release_) release_();
}

std::shared_ptr<Storage> Storage::Allocate(size_t bytes, Device device) {
  if (device.is_cuda()) {
    const int index = device.index();
    void* data = cuda::Allocate(bytes, index);
    return Wrap(data, bytes, device,
                [data, index] { cuda::Free(data, index); });
  }
  void* data = cpu::Allocate(bytes);
  return Wrap(data, bytes, device, [data, bytes] { cpu::Free(data, bytes); });
}

std::shared_ptr<Storage> Storage::Wrap(void* data, size_t bytes, Device device,
                                       std::function<void()> release) {
  return std::shared_ptr<Storage>(
      new Storage(data, bytes, device, std::move(release)));
}

MemoryStats CpuMemoryStats() { return cpu::Stats(); }
void ReleaseCachedCpuMemory() { cpu::ReleaseCached(); }

}  // namespace baton
