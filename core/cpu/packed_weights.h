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

// Weights in the order a primitive wants, kept until they are written to or
// newer ones need the room, so that the micro-batches of one step reorder each
// weight once. Those whose storage died go when the next weight is packed.
// Thread-safe.
class PackedWeights {
 public:
  explicit PackedWeights(size_t max_entries) : max_entries_(max_entries) {}

  // The packed form of `weight` for `layout` (an identity of the wanted order,
  // the same for as long as the program runs), made by `pack()` where the one
  // kept is missing or of an older version.
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
