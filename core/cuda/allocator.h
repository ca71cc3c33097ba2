// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "core/cuda/memory.h"

// The caching allocator of each GPU, behind core/cuda/memory.h. Blocks are cut
// from cudaMalloc segments (2 MiB for requests up to 1 MiB, 20 MiB up to 10
// MiB, else the request's size in 2 MiB steps) and kept for the next request of
// the same stream, without waiting: a stream's work runs in order, so what it
// frees it may use again at once. Blocks that other streams used come back when
// their work has ended. Segments are plain so that other processes can open
// them (CUDA IPC). Thread-safe.
namespace baton::cuda {

// The segment that holds `data`, a block's address.
struct Segment {
  void* base = nullptr;
  size_t bytes = 0;
};
Segment SegmentOf(const void* data, int device);  // null: not of here
// A held segment is not given back to the device, because other processes may
// have opened it. Counted.
void HoldSegment(void* base, int device);
void UnholdSegment(void* base, int device);

// A capture's memory: blocks allocated while the calling thread captures into
// pool `n` come from segments of that pool alone, so that a replay finds its
// memory untouched. Pool 0 is everybody's.
int NewPool();
// The capture into the pool has ended, so what it freed is free.
void EndCapture(int pool);
// The pool's graph is gone: its segments go back as their blocks become free.
void ReleasePool(int pool);

}  // namespace baton::cuda
