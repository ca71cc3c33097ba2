// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/packed_weights.h"

#include <algorithm>
#include <utility>

namespace baton::cpu {

Tensor PackedWeights::GetOrPack(const Tensor& weight, uint64_t layout,
                                absl::FunctionRef<Tensor()> pack) {
  const Key key{weight.storage()->id(), weight.offset(), layout};
  // Read the version before packing: a write in between makes the entry look
  // old.
  const uint64_t version = weight.version();
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(key);
    if (it != entries_.end()) {
      if (it->second.version == version) {
        it->second.used = ++clock_;
        return it->second.packed;
      }
      entries_.erase(it);  // frees its memory for the new one
    }
  }
  Tensor packed = pack();
  MutexLock lock(mutex_);
  entries_.insert_or_assign(key,
                            Entry{weight.storage(), version, ++clock_, packed});
  MakeRoomLocked();
  return packed;
}

size_t PackedWeights::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

void PackedWeights::MakeRoomLocked() {
  std::erase_if(entries_,
                [](const auto& item) { return item.second.source.expired(); });
  if (entries_.size() <= max_entries_) return;
  auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                 [](const auto& a, const auto& b) {
                                   return a.second.used < b.second.used;
                                 });
  entries_.erase(oldest);
}

}  // namespace baton::cpu
