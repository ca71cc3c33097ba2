// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/saving.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "tools/output_file.h"

namespace baton::examples {

absl::Status PrepareToSave(const Saving& saving) {
  if (!saving.on()) return absl::OkStatus();
  const std::string& folder = saving.checkpoints.folder;
  RETURN_IF_ERROR(tools::CheckOutputFolder(folder));
  RETURN_IF_ERROR(tools::CheckOutput(saving.weights));
  const std::vector<int64_t> steps = CheckpointSteps(folder);
  if (steps.empty() || saving.resume != Saving::Resume::kNo)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " has checkpoints up to step ", steps.back(),
      ": give --resume=latest to go on, or another --checkpoint_dir"));
}

}  // namespace baton::examples
