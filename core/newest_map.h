// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <utility>

namespace baton {

// Keeps the `capacity` newest values by key. Key needs operator<.
// Thread-compatible.
template <typename Key, typename Value>
class NewestMap {
 public:
  explicit NewestMap(size_t capacity) : capacity_(capacity) {}
  NewestMap(NewestMap&&) noexcept = default;
  NewestMap& operator=(NewestMap&&) noexcept = default;

  // Adds the value as the newest, and forgets the oldest one if there are too
  // many. Returns false, with no effect, if the key has a value.
  bool Add(const Key& key, Value value) {
    auto [it, added] = index_.try_emplace(key);
    if (!added) return false;
    entries_.emplace_front(key, std::move(value));
    it->second = entries_.begin();
    if (index_.size() > capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return true;
  }
  // Returns null if there is none.
  const Value* Find(const Key& key) const {
    const auto it = index_.find(key);
    return it == index_.end() ? nullptr : &it->second->second;
  }
  // Like Find, and makes the value the newest.
  const Value* Renew(const Key& key) {
    const auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->second;
  }
  // Removes the value and returns it.
  std::optional<Value> Take(const Key& key) {
    const auto it = index_.find(key);
    if (it == index_.end()) return std::nullopt;
    std::optional<Value> value = std::move(it->second->second);
    entries_.erase(it->second);
    index_.erase(it);
    return value;
  }

  // These iterate over pairs of key and value, the newest first.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return index_.size(); }

 private:
  using Entries = std::list<std::pair<Key, Value>>;

  size_t capacity_;
  Entries entries_;
  std::map<Key, typename Entries::iterator> index_;
};

}  // namespace baton
