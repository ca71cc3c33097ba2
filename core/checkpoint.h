// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/safetensors.h"

// A checkpoint stores the state of a training as named tensors, from which it
// can be resumed. A folder has a subfolder for each saved step. It contains
// shards, each written by one process, and a manifest that lists their
// contents:
//
//   runs/a/step_1200/manifest.json
//   runs/a/step_1200/shard_0.5f0c93ab21d4e876.safetensors
//   runs/a/step_1200/shard_1.5f0c93ab21d4e876.safetensors
//
// Each file is written under another name, flushed and renamed, the manifest
// last. A step without a manifest is not a checkpoint. A step with one is
// complete, no matter when the writers were killed, even if a step is saved
// again. Only one training at a time may write to a folder.
namespace baton {

// A checkpoint that is being written.
struct CheckpointDraft {
  std::string path;  // of the step's folder
  int64_t step = 0;
  std::string id;  // identifies this save in the names of its files and in the
                   // shards
  static constexpr auto Fields() {
    return std::tuple{&CheckpointDraft::path, &CheckpointDraft::step,
                      &CheckpointDraft::id};
  }
};

// A shard that a process has written.
struct Shard {
  std::string file;  // within the step's folder
  SafeTensorsIndex index;
  static constexpr auto Fields() {
    return std::tuple{&Shard::file, &Shard::index};
  }
};

// Makes the step's folder.
absl::StatusOr<CheckpointDraft> BeginCheckpoint(const std::string& folder,
                                                int64_t step);
// Writes `tensors` as shard `number`. Any process that sees the folder may call
// this. Errors name the file.
absl::StatusOr<Shard> WriteShard(const CheckpointDraft& draft, int number,
                                 const NamedTensors& tensors);
// Writes the manifest. Then removes all files that belong neither to this
// checkpoint nor to the newest `keep` ones (0: all) up to this step; later
// steps stay. Returns InvalidArgument if two shards use one name for different
// tensors, and NotFound for a shard that is not in the folder as seen from
// here.
absl::Status FinishCheckpoint(const CheckpointDraft& draft,
                              const std::vector<Shard>& shards, int keep);

// Reads a checkpoint. DataLoss means that a file is torn, missing or from
// another save; its message names the file and a step that can be resumed
// instead. Immutable.
class Checkpoint {
 public:
  // Returns NotFound if the step has no checkpoint.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder,
                                         int64_t step);

  int64_t step() const { return step_; }
  const std::string& path() const { return path_; }
  // Returns the names of all tensors, in order, or of those that are called
  // "PART.name".
  std::vector<std::string> Names() const;
  std::vector<std::string> Names(const std::string& part) const;

  // Reads and checks only these tensors. NotFound names a tensor that is in no
  // shard.
  absl::StatusOr<NamedTensors> Read(
      const std::vector<std::string>& names) const;
  // Reads the tensors that are called "PART.name"; the result calls them
  // "name".
  absl::StatusOr<NamedTensors> ReadPart(const std::string& part) const;

 private:
  Checkpoint() = default;
  absl::Status Parse(const std::string& text);
  absl::Status Broken(const absl::Status& status) const;

  std::string folder_, path_;
  int64_t step_ = 0;
  std::vector<Shard> shards_;
  std::map<std::string, size_t> shard_of_;  // by tensor
};

// AsPart renames each tensor "name" to "PART.name". PartOf does the reverse,
// for the tensors of that part.
NamedTensors AsPart(const std::string& part, const NamedTensors& tensors);
NamedTensors PartOf(const NamedTensors& tensors, const std::string& part);

// Returns the saved steps of a folder, in order; empty if there is no such
// folder.
std::vector<int64_t> CheckpointSteps(const std::string& folder);

enum class IfBroken { kFail, kUsePrevious };

// Calls load(checkpoint) with the newest checkpoint and returns its step. If
// that one is broken (DataLoss), returns the error or calls `load` with the one
// before, as `if_broken` says. Returns NotFound if the folder has no
// checkpoint.
absl::StatusOr<int64_t> ResumeFrom(
    const std::string& folder, IfBroken if_broken,
    const std::function<absl::Status(const Checkpoint&)>& load);

// Writes a part, such as the model's weights, as a plain safetensors file,
// which PyTorch's safetensors can read; names lose the part's prefix.
absl::Status ExportPart(const Checkpoint& checkpoint, const std::string& part,
                        const std::string& path);

}  // namespace baton
