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

// Rows, and what the loss compares the outputs with: for cross-entropy i64, a
// label for each row of outputs; for MSE f32, as the outputs.
struct TrainingBatch {
  Tensor inputs;
  Tensor targets;
};

// A model that can be trained a batch at a time, wherever its parts are.
// Confined to one thread.
class Trainable {
 public:
  virtual ~Trainable() = default;
  // Forward, backward and optimizer; the mean loss before the update.
  virtual absl::StatusOr<double> TrainStep(const TrainingBatch& batch) = 0;
  // The same in two halves, for TrainSteps: AwaitStep returns the loss of the
  // first of the steps that are under way, and so many may be. By default a
  // step is over when BeginStep returns. After an error of BeginStep there is
  // no such step.
  virtual size_t most_under_way() const { return 1; }
  virtual absl::Status BeginStep(const TrainingBatch& batch) {
    ended_ = TrainStep(batch);
    return ended_.status();
  }
  virtual absl::StatusOr<double> AwaitStep() { return ended_; }
  // The batch where TrainStep takes it without a copy; not timed.
  virtual absl::StatusOr<TrainingBatch> Place(const TrainingBatch& batch) {
    return batch;
  }
  // Steps that reserve memory and choose kernels; not timed.
  virtual int warm_up_steps() const { return 1; }
  // What there is to say of the steps so far, beside their time.
  virtual std::vector<Detail> Details() const { return {}; }
  // How its stages give each other what they compute; none of one stage, and
  // where they are called one after the other in this process.
  virtual absl::StatusOr<std::vector<dist::PipelineLink>> Links() const {
    return std::vector<dist::PipelineLink>();
  }
  // The order that the last step followed; null: it was no pipeline.
  virtual const dist::Schedule* schedule() const { return nullptr; }

 private:
  absl::StatusOr<double> ended_;
};

// What there is to say of a pipeline.
inline std::vector<Detail> DetailsOf(const dist::PipelineTiming& timing) {
  return DetailsOf(
      PipelineFigures{.schedule = timing.schedule.name,
                      .bubble = timing.bubble,
                      .predicted_bubble = timing.predicted.bubble(),
                      .held = timing.predicted.most_held()});
}

}  // namespace baton::examples
