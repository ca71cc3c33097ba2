// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint.h"

// A checkpoint's manifest is JSON:
//
//   {"format": "baton-checkpoint", "version": 1, "step": 1200, "id": "5f0c...",
//    "shards": [{"file": "shard_0.5f0c....safetensors",
//                "header": {...},  // of the file: names, dtypes, shapes,
//                                  // offsets; in the file, blanks follow
//                "header_bytes": 40960,
//                "crc32": {"model.fc.weight": 1234567890, ...}}]}
namespace baton {

std::string ManifestText(const CheckpointDraft& draft,
                         const std::vector<Shard>& shards);

struct Manifest {
  CheckpointDraft draft;  // without its path
  std::vector<Shard> shards;
};
// Returns DataLoss if the text is not a manifest.
absl::StatusOr<Manifest> ParseManifest(const std::string& text);

}  // namespace baton
