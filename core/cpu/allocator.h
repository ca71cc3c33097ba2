// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "core/storage.h"

// The CPU's caching allocator. Freed blocks are kept for the next request of
// their size class, because the page faults of fresh memory cost more than the
// copies made into it. What is held in all stays below 5/4 of the most that
// was ever alive, plus 64 MiB; beyond that the blocks of the classes used
// longest ago go back to the system. Thread-safe.
namespace baton::cpu {

// 64-byte aligned, uninitialised; throws Error(ResourceExhausted).
void* Allocate(size_t bytes);
// `bytes` as given to Allocate.
void Free(void* data, size_t bytes);

MemoryStats Stats();
void ReleaseCached();

}  // namespace baton::cpu
