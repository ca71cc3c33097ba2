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

// The same for a container: what is large lies in huge pages, in which a random
// access finds its page sooner.
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
