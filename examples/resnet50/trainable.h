// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"

namespace baton::examples {

// Images f32 [N, 3, H, W], channels-last, and what the loss compares with:
// i64 [N] labels for cross-entropy, f32 [N, classes] for MSE.
struct TrainingBatch {
  Tensor images;
  Tensor targets;
};

// A model that can be trained a batch at a time, wherever its parts are.
// Confined to one thread.
class Trainable {
 public:
  virtual ~Trainable() = default;
  // Forward, backward and optimizer; the mean loss before the update.
  virtual absl::StatusOr<double> TrainStep(const TrainingBatch& batch) = 0;
};

}  // namespace baton::examples
