// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/allocator.h"

#include <array>
#include <atomic>
#include <memory>

#include "core/cuda/capture.h"
#include "core/cuda/device_allocator.h"
#include "core/cuda/memory.h"
#include "core/log.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr int kMaxDevices = 64;

DeviceAllocator& AllocatorOf(int device) {
  Require(device >= 0 && device < kMaxDevices, "allocate", "no cuda:", device);
  // Never destroyed, because tensors may outlive main.
  static auto* const allocators = [] {
    auto* made = new std::array<std::unique_ptr<DeviceAllocator>, kMaxDevices>;
    for (int i = 0; i < kMaxDevices; ++i)
      (*made)[static_cast<size_t>(i)] = std::make_unique<DeviceAllocator>(i);
    return made;
  }();
  return *(*allocators)[static_cast<size_t>(device)];
}

}  // namespace

void* Allocate(size_t bytes, const Stream& stream) {
  const CaptureLog* capture = CurrentCapture();
  return AllocatorOf(stream.device().index())
      .Allocate(bytes, stream.index(), capture == nullptr ? 0 : capture->pool);
}

void Free(void* data, int device, const std::vector<Stream>& guests) {
  // A device that has failed reports it at the next op; here only the block is
  // lost.
  const absl::Status status =
      CatchErrors([&] { AllocatorOf(device).Free(data, guests); });
  if (!status.ok()) LogError(status.ToString());
}

Segment SegmentOf(const void* data, int device) {
  return AllocatorOf(device).SegmentOf(data);
}
void HoldSegment(void* base, int device) { AllocatorOf(device).Hold(base); }
void UnholdSegment(void* base, int device) { AllocatorOf(device).Unhold(base); }
MemoryStats Stats(int device) { return AllocatorOf(device).Stats(); }
size_t FreeBytes(int device) { return AllocatorOf(device).FreeBytes(); }
void ResetPeak(int device) { AllocatorOf(device).ResetPeak(); }
void SetLimit(int device, size_t bytes) { AllocatorOf(device).SetLimit(bytes); }
void ReleaseCached(int device) { AllocatorOf(device).ReleaseCached(); }

int NewPool() {
  static std::atomic<int> last{0};
  return ++last;
}

void EndCapture(int pool) {
  for (int device = 0; device < DeviceCount(); ++device)
    AllocatorOf(device).EndCapture(pool);
}

void ReleasePool(int pool) {
  for (int device = 0; device < DeviceCount(); ++device)
    AllocatorOf(device).ReleasePool(pool);
}

}  // namespace baton::cuda
