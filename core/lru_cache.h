// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "core/mutex.h"

namespace baton {

// The `capacity` most recently used values by key. Key needs operator<.
// Thread-safe.
template <typename Key, typename Value>
class LruCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // Returns the value of `key`; if there is none, `make()` makes it (a
  // Pointer). Two threads may both make one; the first to finish wins.
  template <typename Make>
  Pointer GetOrMake(const Key& key, Make make) {
    if (Pointer found = Find(key)) return found;
    Pointer made = make();
    MutexLock lock(mutex_);
    auto [it, inserted] = index_.try_emplace(key);
    if (!inserted) return it->second->second;
    order_.emplace_front(key, std::move(made));
    it->second = order_.begin();
    if (index_.size() > capacity_) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

  // Returns null if there is none.
  Pointer Find(const Key& key) {
    MutexLock lock(mutex_);
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }

  size_t size() const {
    MutexLock lock(mutex_);
    return index_.size();
  }

 private:
  using Order = std::list<std::pair<Key, Pointer>>;  // most recent first

  const size_t capacity_;
  mutable Mutex mutex_;
  Order order_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, typename Order::iterator> index_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
