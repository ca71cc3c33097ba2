// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/memory.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

int DeviceCount() { return 0; }
void* Allocate(size_t, const Stream&) { FailWithoutCuda("allocate"); }
void Free(void*, int, const std::vector<Stream>&) { FailWithoutCuda("free"); }
MemoryStats Stats(int) { FailWithoutCuda("memory_stats"); }
size_t FreeBytes(int) { FailWithoutCuda("memory_stats"); }
void ResetPeak(int) { FailWithoutCuda("memory_stats"); }
void SetLimit(int, size_t) { FailWithoutCuda("memory_limit"); }
void ReleaseCached(int) { FailWithoutCuda("release_cached"); }
void* AllocatePinned(size_t) { FailWithoutCuda("allocate_pinned"); }
void FreePinned(void*, size_t, const std::vector<Stream>&) {
  FailWithoutCuda("free_pinned");
}
std::shared_ptr<void> Pin(void*, size_t) { FailWithoutCuda("pin"); }
void Copy(const Tensor&, const Tensor&, bool) { FailWithoutCuda("copy"); }
void Fill(const Tensor&, double) { FailWithoutCuda("fill"); }
bool PeersReach(int, int) { FailWithoutCuda("peers_reach"); }

}  // namespace baton::cuda
