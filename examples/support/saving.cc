// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/saving.h"

#include <unistd.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"

namespace baton::examples {

absl::Status PrepareToSave(const Saving& saving) {
  if (!saving.on()) return absl::OkStatus();
  const std::string& folder = saving.checkpoints.folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || access(folder.c_str(), W_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write to the folder ", folder, ": no folder, or not allowed"));
  }
  const std::vector<int64_t> steps = CheckpointSteps(folder);
  if (steps.empty() || saving.resume != Saving::Resume::kNo)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " has checkpoints up to step ", steps.back(),
      ": give --resume=latest to go on, or another --checkpoint_dir"));
}

}  // namespace baton::examples
