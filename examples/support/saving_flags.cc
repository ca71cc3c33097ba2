// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/saving_flags.h"

#include <cstdint>
#include <string>

#include "absl/flags/flag.h"
#include "core/status.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, checkpoint_dir, "",
          "save the training into this folder, which all workers must see");
ABSL_FLAG(int64_t, save_every, 0, "steps; 0: after each epoch");
ABSL_FLAG(int, keep, 3, "the newest so many checkpoints; 0: all");
ABSL_FLAG(std::string, resume, "no",
          "from --checkpoint_dir: no (it must have none), latest (from the "
          "newest checkpoint, if there is one), or whole (from the newest that "
          "is not broken)");
ABSL_FLAG(std::string, weights, "",
          "safetensors file of weights: read first where it exists and nothing "
          "is resumed; with --checkpoint_dir written after each epoch");

namespace baton::examples {
namespace {

absl::StatusOr<Saving::Resume> ResumeFlag() {
  const std::string name = absl::GetFlag(FLAGS_resume);
  if (name == "no") return Saving::Resume::kNo;
  if (name == "latest") return Saving::Resume::kLatest;
  if (name == "whole") return Saving::Resume::kWhole;
  return tools::CheckWord("--resume", name, {"no", "latest", "whole"});
}

}  // namespace

absl::StatusOr<Saving> SavingFromFlags() {
  Saving saving;
  saving.checkpoints.folder = absl::GetFlag(FLAGS_checkpoint_dir);
  saving.checkpoints.keep = absl::GetFlag(FLAGS_keep);
  saving.every = absl::GetFlag(FLAGS_save_every);
  saving.weights = absl::GetFlag(FLAGS_weights);
  ASSIGN_OR_RETURN(saving.resume, ResumeFlag());
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_keep, FLAGS_save_every));
  if (!saving.on() &&
      (saving.every > 0 || saving.resume != Saving::Resume::kNo))
    return tools::WrongFlag(
        "checkpoint_dir", "is missing, but --save_every or --resume is given");
  return saving;
}

}  // namespace baton::examples
