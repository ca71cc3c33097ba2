// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "examples/support/measurement.h"
#include "models/distributed/pipeline_link.h"
#include "models/distributed/schedule.h"
#include "models/distributed/simulation.h"

namespace baton::examples {

// Rows and their targets: for cross-entropy i64, a label for each row of
// outputs; for MSE f32, shaped as the outputs.
struct TrainingBatch {
  Tensor inputs;
  Tensor targets;
};

// A model that can be trained a batch at a time, wherever its parts are.
// Confined to one thread.
class Trainable {
 public:
  virtual ~Trainable() = default;
  // Runs forward, backward and the optimizer; returns the mean loss before the
  // update.
  virtual absl::StatusOr<double> TrainStep(const TrainingBatch& batch) = 0;
  // The two halves of TrainStep, for TrainSteps. AwaitStep returns the loss of
  // the oldest step under way; most_under_way() steps may be. By default
  // BeginStep runs the whole step. If BeginStep returns an error, its step has
  // not begun.
  virtual size_t most_under_way() const { return 1; }
  virtual absl::Status BeginStep(const TrainingBatch& batch) {
    ended_ = TrainStep(batch);
    return ended_.status();
  }
  virtual absl::StatusOr<double> AwaitStep() { return ended_; }
  // Returns the batch where TrainStep takes it without a copy; not timed.
  virtual absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) {
    return batch;
  }
  // The number of first steps that reserve memory and choose kernels; not
  // timed.
  virtual int warm_up_steps() const { return 1; }
  // Returns figures of the steps so far besides their time.
  virtual std::vector<Detail> Details() const { return {}; }
  // Returns the links between its stages; none if there is one stage, or if
  // this process calls the stages one after the other.
  virtual absl::StatusOr<std::vector<dist::PipelineLink>> Links() const {
    return std::vector<dist::PipelineLink>();
  }
  // The schedule of the last step; null if it was not a pipeline's.
  virtual const dist::Schedule* schedule() const { return nullptr; }

 private:
  absl::StatusOr<double> ended_;
};

// Returns the figures of a pipeline.
inline std::vector<Detail> DetailsOf(const dist::PipelineTiming& timing) {
  return DetailsOf(
      PipelineFigures{.schedule = timing.schedule.name,
                      .bubble = timing.bubble,
                      .predicted_bubble = timing.predicted.bubble(),
                      .held = timing.predicted.most_held()});
}

}  // namespace baton::examples
