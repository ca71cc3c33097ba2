// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/storage.h"
#include "core/stream.h"

namespace baton {
class Tensor;
}

// Memory of GPUs. core/no_cuda has the same symbols for builds without CUDA:
// there each throws Error(FailedPrecondition), which names the build option,
// except DeviceCount, which returns 0.
namespace baton::cuda {

int DeviceCount();

// See core/cuda/allocator.h.
void* Allocate(size_t bytes, const Stream& stream);
void Free(void* data, int device, const std::vector<Stream>& guests);
MemoryStats Stats(int device);
size_t FreeBytes(int device);
void ResetPeak(int device);
void SetLimit(int device, size_t bytes);
void ReleaseCached(int device);

// These allocate pinned host memory, cached by size class. GPUs copy from and
// to it without the CPU.
void* AllocatePinned(size_t bytes);
void FreePinned(void* data, size_t bytes, const std::vector<Stream>& users);
// Pins memory that this process has mapped, for all GPUs, until the last copy
// of the result is destroyed, which must happen before the memory is unmapped.
// Takes milliseconds for each 10 MB. Throws Error(FailedPrecondition) if CUDA
// refuses.
std::shared_ptr<void> Pin(void* data, size_t bytes);

// Copies and casts. `target` has `source`'s shape, and at least one of them is
// on a CUDA device. A copy between the CPU and a GPU has ended on return unless
// the CPU's side is pinned and `wait` is false.
void Copy(const Tensor& target, const Tensor& source, bool wait = true);
void Fill(const Tensor& target, double value);

// Returns whether the two GPUs read each other's memory directly, which is
// tried with data; copies between others go through the host.
bool PeersReach(int device, int peer);

}  // namespace baton::cuda
