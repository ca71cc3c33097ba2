// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "core/mutex.h"
#include "core/newest_map.h"

namespace baton {

// Keeps the `capacity` most recently used values by key. Key needs operator<.
// Thread-safe.
template <typename Key, typename Value>
class LruCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit LruCache(size_t capacity) : values_(capacity) {}

  // Returns the value of `key`. If there is none, `make()` returns a new one (a
  // Pointer). Two threads may both make one; the first to finish wins.
  template <typename Make>
  Pointer GetOrMake(const Key& key, Make make) {
    if (Pointer found = Find(key)) return found;
    Pointer made = make();
    MutexLock lock(mutex_);
    values_.Add(key, std::move(made));
    return *values_.Find(key);
  }

  // Returns null if there is none.
  Pointer Find(const Key& key) {
    MutexLock lock(mutex_);
    const Pointer* found = values_.Renew(key);
    return found == nullptr ? nullptr : *found;
  }

  size_t size() const {
    MutexLock lock(mutex_);
    return values_.size();
  }

 private:
  mutable Mutex mutex_;
  NewestMap<Key, Pointer> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
