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

// Checkpoints: what a training can be resumed from, as named tensors. A folder
// has a subfolder for each step that was saved; in it are shards, each written
// by one process, and a manifest that says what they hold:
//
//   runs/a/step_1200/manifest.json
//   runs/a/step_1200/shard_0.5f0c93ab21d4e876.safetensors
//   runs/a/step_1200/shard_1.5f0c93ab21d4e876.safetensors
//
// Each file is written aside, flushed and renamed, the manifest last. A step
// without a manifest is no checkpoint; one with it is whole, whenever those who
// wrote were killed, even where a step is saved again. One training at a time
// writes to a folder.
namespace baton {

// A checkpoint while it is written.
struct CheckpointDraft {
  std::string path;  // of the step's folder
  int64_t step = 0;
  std::string id;  // of this save, in the names of its files and in the shards
  static constexpr auto Fields() {
    return std::tuple{&CheckpointDraft::path, &CheckpointDraft::step,
                      &CheckpointDraft::id};
  }
};

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
// By any process that sees the folder. Errors name the file.
absl::StatusOr<Shard> WriteShard(const CheckpointDraft& draft, int number,
                                 const NamedTensors& tensors);
// Writes the manifest, then removes what is neither of this checkpoint nor of
// the newest `keep` (0: of any) up to this step; those of later steps stay.
// InvalidArgument where two shards have one name for different tensors,
// NotFound for a shard that is not in the folder as seen from here.
absl::Status FinishCheckpoint(const CheckpointDraft& draft,
                              const std::vector<Shard>& shards, int keep);

// A checkpoint to read. DataLoss, for what is torn, missing or of another save,
// names the file and says from which step one can resume instead. Immutable.
class Checkpoint {
 public:
  // NotFound where there is none of that step.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder,
                                         int64_t step);

  int64_t step() const { return step_; }
  const std::string& path() const { return path_; }
  // Of all tensors, in order; or of those that are called "PART.name".
  std::vector<std::string> Names() const;
  std::vector<std::string> Names(const std::string& part) const;

  // Reads and checks these alone. NotFound names what is in no shard.
  absl::StatusOr<NamedTensors> Read(
      const std::vector<std::string>& names) const;
  // Those that are called "PART.name", as "name".
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

// The tensors as those of a part of a checkpoint: "name" as "PART.name"; and
// back, for those that are of the part.
NamedTensors AsPart(const std::string& part, const NamedTensors& tensors);
NamedTensors PartOf(const NamedTensors& tensors, const std::string& part);

// The steps of a folder that have been saved, in order; none where there is no
// such folder.
std::vector<int64_t> CheckpointSteps(const std::string& folder);

enum class IfBroken { kFail, kUsePrevious };

// Calls load(checkpoint) with the newest one, and gives its step. Where that is
// broken (DataLoss), it is an error or `load` is called with the one before it,
// as asked. NotFound where the folder has no checkpoint.
absl::StatusOr<int64_t> ResumeFrom(
    const std::string& folder, IfBroken if_broken,
    const std::function<absl::Status(const Checkpoint&)>& load);

// A part, the model's weights, as a plain safetensors file, which PyTorch's
// safetensors reads, under the names that it has here.
absl::Status ExportPart(const Checkpoint& checkpoint, const std::string& part,
                        const std::string& path);

}  // namespace baton
