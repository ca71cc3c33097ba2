// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "core/storage.h"

// The CPU's caching allocator. Freed blocks are kept for the next request of
// their size class, because the page faults of fresh memory cost more than the
// copies made into it. The allocator holds at most 5/4 of the most bytes that
// were ever alive, plus 64 MiB; beyond that it gives blocks back to the system,
// those of the size classes used longest ago first. Thread-safe.
namespace baton::cpu {

// Returns uninitialised memory, 64-byte aligned; throws
// Error(ResourceExhausted).
void* Allocate(size_t bytes);
// `bytes` is what Allocate was given.
void Free(void* data, size_t bytes);

MemoryStats Stats();
void ReleaseCached();

// Allocates the same memory for containers. Large blocks lie in huge pages, in
// which a random access finds its page sooner.
template <typename T>
struct ContainerAllocator {
  using value_type = T;
  ContainerAllocator() = default;
  template <typename U>
  // NOLINTNEXTLINE(google-explicit-constructor): containers convert them
  ContainerAllocator(const ContainerAllocator<U>&) {}

  T* allocate(size_t count) {
    return static_cast<T*>(Allocate(count * sizeof(T)));
  }
  void deallocate(T* data, size_t count) { Free(data, count * sizeof(T)); }
  friend bool operator==(ContainerAllocator, ContainerAllocator) {
    return true;
  }
};

}  // namespace baton::cpu
