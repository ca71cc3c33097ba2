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

// How far a training on images is. A checkpoint stores it beside the model, the
// optimizer and the loader's position.
struct TrainingProgress {
  int64_t steps = 0;    // since the training began
  int64_t images = 0;   // of the epoch, so far
  double loss_sum = 0;  // over the images above
};

// Saves and resumes a training on images. The model and the loader must outlive
// it. Confined to one thread.
class SavedTraining {
 public:
  static absl::StatusOr<std::unique_ptr<SavedTraining>> Make(
      const Saving& saving, RemoteResNet& model, data::Loader& loader);

  // Restores model, loader and progress. If the model has continued an earlier
  // trainer's training, they continue from there; otherwise from a checkpoint,
  // or the model starts from weights, as `saving` says. Prints which.
  absl::Status Begin();
  // Call this after an error of a step. Returns OK if the model has returned to
  // a checkpoint; then restores loader and progress, too, and says so.
  // Otherwise returns the error.
  absl::Status GoBack(const absl::Status& why);
  // Call this after each step.
  void Count(double loss, int64_t images);
  // Returns true if a save is due once `steps` more steps are over.
  bool IsDue(int64_t steps) const;
  // Saves the training at the batch that the loader returns next. Call it while
  // no step is under way. If a worker of a recoverable pipeline was lost,
  // prints that and returns OK, because the next step recovers the pipeline.
  absl::Status Save();
  // Records the same position for a restarted trainer; the next step writes it
  // to the journal.
  void Note();
  // Call this after each epoch: moves the loader to the next one. Saves the
  // training if an epoch's end is when to save, or this was the `last`.
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
  int64_t returns_ = 0;  // how often the model has returned to a checkpoint
};

}  // namespace baton::examples
