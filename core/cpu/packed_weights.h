// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/functional/function_ref.h"
#include "core/mutex.h"
#include "core/tensor.h"

namespace baton::cpu {

// Keeps weights in the memory order that a primitive wants, so that the
// micro-batches of one step reorder each weight once. An entry is valid until
// its weight is written to, and is dropped when newer ones need the room.
// Entries whose storage is gone are dropped when the next weight is packed.
// Thread-safe.
class PackedWeights {
 public:
  explicit PackedWeights(size_t max_entries) : max_entries_(max_entries) {}

  // Returns `weight` packed for `layout`, which identifies the wanted order for
  // as long as the program runs. Calls `pack()` if no packed form is kept or it
  // is of an older version.
  Tensor GetOrPack(const Tensor& weight, uint64_t layout,
                   absl::FunctionRef<Tensor()> pack);
  size_t size() const;

 private:
  struct Key {
    uint64_t storage;
    int64_t offset;
    uint64_t layout;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    std::weak_ptr<Storage> source;
    uint64_t version;
    uint64_t used;
    Tensor packed;
  };
  void MakeRoomLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_entries_;
  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::cpu
