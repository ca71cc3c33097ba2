// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/checkpoint_writer.h"

namespace baton::examples {

// How a training program saves its state, from the command line.
struct Saving {
  enum class Resume { kNo, kLatest, kWhole };

  CheckpointOptions checkpoints;  // without a folder nothing is saved
  int64_t every = 0;              // steps; 0: when an epoch is over
  Resume resume = Resume::kNo;
  std::string weights;  // plain safetensors file: read first, kept up to date

  bool on() const { return !checkpoints.folder.empty(); }
  IfBroken if_broken() const {
    return resume == Resume::kWhole ? IfBroken::kUsePrevious : IfBroken::kFail;
  }
};

// Makes the folder, so that an error is known before the training begins.
// Returns FailedPrecondition if it has checkpoints but none is to be resumed
// from: later checkpoints of another training would be mixed with this one's.
absl::Status PrepareToSave(const Saving& saving);

}  // namespace baton::examples
