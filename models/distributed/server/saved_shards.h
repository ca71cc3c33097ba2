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

// The form of shards in a checkpoint (core/checkpoint.h). Dense keys are whole,
// whatever the shards were: "model.KEY" and "optimizer.KEY.STATE". Rows are
// stored by the shard that had them: "rows.SHARD.TABLE.keys", ".records" and
// ".steps". Also "servers.versions" and "servers.steps", i64 [shards].
namespace baton::dist {

// Returns the dense keys of all shards in the form of a checkpoint; `images`
// are indexed by shard.
NamedTensors SavedForm(const ServerOptions& options, const KeyLayout& layout,
                       const std::vector<ShardImage>& images);
// Reads dense keys for as many shards as the layout has, without rows. NotFound
// names what the checkpoint lacks, InvalidArgument what does not fit.
absl::StatusOr<std::vector<ShardImage>> LoadDense(const ServerOptions& options,
                                                  const KeyLayout& layout,
                                                  const Checkpoint& checkpoint);

// Returns the tables of one shard in the form of a checkpoint.
NamedTensors SavedForm(const ServerOptions& options, int32_t shard,
                       const std::vector<RowTableImage>& tables);
// Reads the rows, from all saved shards, that now belong to this shard.
absl::StatusOr<std::vector<RowTableImage>> LoadRows(
    const ServerOptions& options, int32_t shard, int32_t shards,
    const SavedRows& saved);

}  // namespace baton::dist
