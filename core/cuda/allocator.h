// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "core/cuda/memory.h"

// The caching allocator of each GPU, which implements core/cuda/memory.h.
// Blocks are cut from segments (2 MiB for requests up to 1 MiB, 20 MiB up to 10
// MiB, otherwise the request's size in 2 MiB steps), which come from cudaMalloc
// so that other processes can open them (CUDA IPC). A freed block is kept for
// the next request of the same stream, which may use it at once, because a
// stream's work runs in order. Blocks that other streams used come back when
// their work has ended. Thread-safe.
namespace baton::cuda {

// The segment that holds `data`, a block's address.
struct Segment {
  void* base = nullptr;
  size_t bytes = 0;
};
Segment SegmentOf(const void* data, int device);  // null if unknown
// While a segment is held, it is not given back to the device, because other
// processes may have opened it. Holds are counted.
void HoldSegment(void* base, int device);
void UnholdSegment(void* base, int device);

// Makes a pool for a capture. Blocks allocated while the calling thread
// captures into pool `n` come only from segments of that pool, so that a replay
// finds its memory untouched. All other work uses pool 0.
int NewPool();
// Call this when the capture into the pool has ended: what it freed becomes
// free.
void EndCapture(int pool);
// Call this when the pool's graph is gone: its segments go back to the device
// as their blocks become free.
void ReleasePool(int pool);

}  // namespace baton::cuda
