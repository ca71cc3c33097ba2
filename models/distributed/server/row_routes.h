// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

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
  // Joins what each shard returned for its keys; the rows are in the requested
  // order.
  std::vector<Tensor> Join(
      const std::vector<std::vector<Tensor>>& of_shards) const;

 private:
  struct Picked {
    RowGradients rows;  // all gradients, but only the keys of the shard
    Tensor places;  // i64 [N], indices into the gradients; undefined: all of
                    // them
  };

  int shards() const { return static_cast<int>(keys_.size()); }
  void AddGradients(const RowTableOptions& table, const RowGradients& rows);
  void AddKeys(const RowTableOptions& table, const RowKeys& rows);
  Tensor JoinTable(size_t table, const std::vector<Tensor>& parts) const;

  std::vector<int64_t> widths_;  // of each table that is pulled from
  std::vector<std::vector<Picked>> gradients_;  // by shard
  std::vector<std::vector<RowKeys>> keys_;      // by shard
  // For each table that is pulled from, by shard: indices into the requested
  // rows. Empty with one shard.
  std::vector<std::vector<std::vector<int64_t>>> places_;
};

}  // namespace baton::dist
