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
                 std::function<void()> release, std::shared_ptr<StreamUse> use)
    : data_(data),
      bytes_(bytes),
      device_(device),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      use_(std::move(use)),
      release_(std::move(release)) {}

Storage::~Storage() {
  if (release_) release_();
}

std::shared_ptr<Storage> Storage::Allocate(size_t bytes, Device device) {
  if (device.is_cuda()) {
    const Stream stream = CurrentStream(device);
    auto use = std::make_shared<StreamUse>(stream);
    void* data = cuda::Allocate(bytes, stream);
    auto release = [data, use] {
      cuda::Free(data, use->home().device().index(), use->Guests());
    };
    return std::shared_ptr<Storage>(
        new Storage(data, bytes, device, std::move(release), use));
  }
  void* data = cpu::Allocate(bytes);
  return Wrap(data, bytes, device, [data, bytes] { cpu::Free(data, bytes); });
}

std::shared_ptr<Storage> Storage::AllocatePinned(size_t bytes) {
  auto use = std::make_shared<StreamUse>(Stream::Default(Device::Cpu()));
  void* data = cuda::AllocatePinned(bytes);
  auto release = [data, bytes, use] {
    cuda::FreePinned(data, bytes, use->Guests());
  };
  return std::shared_ptr<Storage>(
      new Storage(data, bytes, Device::Cpu(), std::move(release), use));
}

std::shared_ptr<Storage> Storage::Wrap(void* data, size_t bytes, Device device,
                                       std::function<void()> release) {
  auto use = device.is_cuda()
                 ? std::make_shared<StreamUse>(CurrentStream(device))
                 : nullptr;
  return std::shared_ptr<Storage>(
      new Storage(data, bytes, device, std::move(release), std::move(use)));
}

MemoryStats CpuMemoryStats() { return cpu::Stats(); }
void ReleaseCachedCpuMemory() { cpu::ReleaseCached(); }

MemoryStats GpuMemoryStats(Device device) {
  return cuda::Stats(device.index());
}
size_t FreeGpuMemory(Device device) { return cuda::FreeBytes(device.index()); }
void ResetPeakGpuMemory(Device device) { cuda::ResetPeak(device.index()); }
void SetGpuMemoryLimit(Device device, size_t bytes) {
  cuda::SetLimit(device.index(), bytes);
}
void ReleaseCachedGpuMemory(Device device) {
  cuda::ReleaseCached(device.index());
}

}  // namespace baton
