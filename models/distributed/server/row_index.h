// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/cpu/allocator.h"
#include "models/distributed/server/mix_bits.h"

namespace baton::dist {

// Maps keys to rows. If keys are known before they are looked up, the one cache
// line that most lookups need can be prefetched. Large indices are in huge
// pages. Thread-compatible.
class RowIndex {
 public:
  using Row = int32_t;
  static constexpr Row kNone = -1;

  RowIndex() : slots_(kLeast) {}

  size_t size() const { return size_; }
  // Always inline, because g++ 12 drops calls of functions that only prefetch.
  [[gnu::always_inline]] void Prefetch(int64_t key) const {
    __builtin_prefetch(&slots_[HomeOf(key)]);
  }
  // Returns kNone for an unknown key.
  Row Find(int64_t key) const { return slots_[SlotOf(key)].row; }
  // Returns a reference, which is kNone for a new key; the caller must then set
  // it before the next call.
  Row& FindOrAdd(int64_t key) {
    size_t at = SlotOf(key);
    if (slots_[at].row == kNone) {
      if (2 * (size_ + 1) > slots_.size()) {
        Grow();
        at = SlotOf(key);
      }
      ++size_;
      slots_[at].key = key;
    }
    return slots_[at].row;
  }
  // The key must exist.
  void Erase(int64_t key) {
    size_t hole = SlotOf(key);
    slots_[hole].row = kNone;
    --size_;
    // Entries behind the hole may have been displaced by the erased one.
    for (size_t at = Next(hole); slots_[at].row != kNone; at = Next(at)) {
      const size_t home = HomeOf(slots_[at].key);
      const bool may_stay =
          hole <= at ? hole < home && home <= at : hole < home || home <= at;
      if (may_stay) continue;
      slots_[hole] = slots_[at];
      slots_[at].row = kNone;
      hole = at;
    }
  }
  // Calls fn(key, row) for all entries, in no particular order.
  template <typename Fn>
  void ForEach(Fn fn) const {
    for (const Slot& slot : slots_)
      if (slot.row != kNone) fn(slot.key, slot.row);
  }

 private:
  struct Slot {
    int64_t key = 0;
    Row row = kNone;
  };
  using Slots = std::vector<Slot, cpu::ContainerAllocator<Slot>>;
  static constexpr size_t kLeast = 16;
  static constexpr size_t kLarge = size_t{4} << 20;

  size_t HomeOf(int64_t key) const {
    return MixBits(static_cast<uint64_t>(key)) & (slots_.size() - 1);
  }
  size_t Next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  // Returns the slot of the key, or the one that it would get.
  size_t SlotOf(int64_t key) const {
    size_t at = HomeOf(key);
    while (slots_[at].row != kNone && slots_[at].key != key) at = Next(at);
    return at;
  }
  void Grow() {
    {
      const Slots before = std::exchange(slots_, Slots(2 * slots_.size()));
      for (const Slot& slot : before)
        if (slot.row != kNone) slots_[SlotOf(slot.key)] = slot;
    }
    // The allocator would keep the old slots, but nothing else is as large.
    if (slots_.size() >= kLarge) cpu::ReleaseCached();
  }

  Slots slots_;  // their number is a power of two; at most half of them are
                 // used
  size_t size_ = 0;
};

}  // namespace baton::dist
