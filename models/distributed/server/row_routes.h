// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/mutex.h"
#include "core/tensor.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {

// Which rows of a trade go to which shard, and where pulled rows belong in the
// result. With one shard nothing is moved or copied. Immutable.
class RowRoutes {
 public:
  // The arguments must have been checked.
  RowRoutes(const ServerOptions& options, int shards,
            const std::vector<RowGradients>& gradients,
            const std::vector<RowKeys>& keys);

  // Returns the shard's part of the gradients. Tables without keys at the shard
  // are left out here, but not in keys(). Rows that must be picked out are
  // copied to tensors that `empty` makes.
  std::vector<RowGradients> Gradients(int shard,
                                      const ShardState::Empty& empty) const;
  const std::vector<RowKeys>& keys(int shard) const {
    return keys_[static_cast<size_t>(shard)];
  }

 private:
  friend class JoinedRows;

  // The keys of a table, those of each shard together.
  struct Split {
    Split(const RowTableOptions& table, const Tensor& keys, int shards);
    int64_t count() const { return first.back(); }
    Tensor KeysOf(size_t shard) const { return Of(keys, shard); }
    Tensor PlacesOf(size_t shard) const { return Of(places, shard); }
    Tensor Of(const Tensor& all, size_t shard) const {
      return all.Slice(0, first[shard], first[shard + 1]);
    }

    Tensor keys;                 // i64 [N], as they are called at their shard
    Tensor places;               // i64 [N], indices into the given keys
    std::vector<int64_t> first;  // of each shard, and N
  };
  struct Picked {
    RowGradients rows;  // all gradients, but only the keys of the shard
    Tensor places;  // i64 [N], indices into the gradients; undefined: all of
                    // them
  };

  int shards() const { return static_cast<int>(keys_.size()); }
  void AddGradients(const RowTableOptions& table, const RowGradients& rows);
  void AddKeys(const RowTableOptions& table, const RowKeys& rows);

  std::vector<std::vector<Picked>> gradients_;  // by shard
  std::vector<std::vector<RowKeys>> keys_;      // by shard
  std::vector<Split> pulled_;  // for each table; empty with one shard
};

// The pulled rows of a trade in the requested order. Thread-safe.
class JoinedRows {
 public:
  explicit JoinedRows(std::shared_ptr<const RowRoutes> routes);

  // Takes what a shard has returned for its keys: those of one shard are copied
  // to their places beside those of others, on the CPU unless all shards return
  // rows on one GPU.
  void Take(int shard, const std::vector<Tensor>& rows);
  // Call it once the rows of all shards are taken.
  std::vector<Tensor> All() const;

 private:
  struct Table {
    Tensor joined;
    std::vector<Tensor> parts;  // by shard, of rows on a GPU
  };
  // Returns the tensor to which rows of the shard are to be copied; undefined
  // if there is nothing to copy.
  Tensor PlaceFor(size_t table, size_t shard, const Tensor& rows);
  Tensor JoinOnGpu(size_t table, const std::vector<Tensor>& of_shards) const;

  const std::shared_ptr<const RowRoutes> routes_;
  mutable Mutex mutex_;
  std::vector<Table> tables_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
