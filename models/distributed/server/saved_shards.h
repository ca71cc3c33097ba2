// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/safetensors.h"
#include "models/distributed/server/key_layout.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/shard_state.h"

// Shards in a checkpoint (core/checkpoint.h): dense keys whole, "model.KEY" and
// "optimizer.KEY.STATE", whatever the shards were; the rows of each shard as
// that had them, "rows.SHARD.TABLE.keys", ".records" and ".steps"; and
// "servers.versions" and "servers.steps", i64 [shards].
namespace baton::dist {

// What the dense keys of all shards are in a checkpoint; images by shard.
NamedTensors SavedForm(const ServerOptions& options, const KeyLayout& layout,
                       const std::vector<ShardImage>& images);
// And back, for as many shards as the layout has: rows are left out. NotFound
// names what the checkpoint lacks, InvalidArgument what does not fit.
absl::StatusOr<std::vector<ShardImage>> LoadDense(const ServerOptions& options,
                                                  const KeyLayout& layout,
                                                  const Checkpoint& checkpoint);

// What the tables of one shard are in a checkpoint.
NamedTensors SavedForm(const ServerOptions& options, int32_t shard,
                       const std::vector<RowTableImage>& tables);
// The rows of all shards that are now of this one.
absl::StatusOr<std::vector<RowTableImage>> LoadRows(
    const ServerOptions& options, int32_t shard, int32_t shards,
    const SavedRows& saved);

}  // namespace baton::dist
