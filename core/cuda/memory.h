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

// The GPU's memory. core/no_cuda has the same symbols for builds without CUDA:
// there each throws Error(FailedPrecondition) naming the build option, except
// DeviceCount, which is 0.
namespace baton::cuda {

int DeviceCount();

// See core/cuda/allocator.h.
void* Allocate(size_t bytes, const Stream& stream);
void Free(void* data, int device, const std::vector<Stream>& guests);
MemoryStats Stats(int device);
void ResetPeak(int device);
void SetLimit(int device, size_t bytes);
void ReleaseCached(int device);

// Pinned host memory, cached by size class: the memory that GPUs copy from and
// to by themselves, beside the CPU's work.
void* AllocatePinned(size_t bytes);
void FreePinned(void* data, size_t bytes, const std::vector<Stream>& users);
// Pins what this process has mapped, for all GPUs, until the last copy of the
// result goes, which is before it is unmapped. It takes a while: milliseconds
// for each 10 MB. Throws Error(FailedPrecondition) where CUDA does not pin it.
std::shared_ptr<void> Pin(void* data, size_t bytes);

// `target` has `source`'s shape; either side, or both, is on a CUDA device.
// Casts. Between the CPU and a GPU it has ended on return unless the CPU's side
// is pinned and `wait` is false.
void Copy(const Tensor& target, const Tensor& source, bool wait = true);
void Fill(const Tensor& target, double value);

// Whether the GPUs read each other's memory directly, tried with data; copies
// between others go by way of the host.
bool PeersReach(int device, int peer);

}  // namespace baton::cuda
