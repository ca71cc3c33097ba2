// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/support/saving.h"
#include "models/data/loader.h"
#include "models/distributed/checkpoint.h"

namespace baton::examples {

// Where a training on images is, which a checkpoint keeps beside the model, its
// optimizer and the loader's position.
struct TrainingProgress {
  int64_t steps = 0;    // since the training began
  int64_t images = 0;   // of the epoch, so far
  double loss_sum = 0;  // over them
};

// Saves a training on images, and resumes it. The model and the loader outlive
// it. Confined to one thread.
class SavedTraining {
 public:
  static absl::StatusOr<std::unique_ptr<SavedTraining>> Make(
      const Saving& saving, RemoteResNet& model, data::Loader& loader);

  // Model, loader and progress go on from what the model has taken up of a
  // trainer before this one; else as `saving` says from a checkpoint, or the
  // model starts from weights. Prints which.
  absl::Status Begin();
  // After an error: OK if the model has gone back to a checkpoint. Then the
  // loader and progress have, too, which it prints. Else the error.
  absl::Status GoBack(const absl::Status& why);
  // After each step.
  void Count(double loss, int64_t images);
  // Whether to Save once so many more steps are over.
  bool IsDue(int64_t steps) const;
  // While no step is under way, at the batch that the loader gives next. Says
  // so and returns OK if a worker of a pipeline that is recovered was lost: the
  // next step recovers it.
  absl::Status Save();
  // The same for a trainer that takes the training up from a journal, which the
  // next step writes.
  void Note();
  // The loader goes on to the next epoch; `last`: there is none.
  absl::Status AfterEpoch(bool last);

  const TrainingProgress& progress() const { return progress_; }

 private:
  SavedTraining(Saving saving, RemoteResNet& model, data::Loader& loader)
      : saving_(std::move(saving)), model_(model), loader_(loader) {}

  absl::Status Write();
  NamedTensors Position() const;
  absl::Status GoOnFrom(const NamedTensors& position);

  const Saving saving_;
  RemoteResNet& model_;
  data::Loader& loader_;
  std::unique_ptr<dist::Checkpointer> checkpoints_;
  TrainingProgress progress_;
  int64_t returns_ = 0;  // to checkpoints, of the model
};

}  // namespace baton::examples
