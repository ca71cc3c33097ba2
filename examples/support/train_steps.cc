// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/train_steps.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "models/distributed/pipeline.h"

namespace baton::examples {

TrainSteps::TrainSteps(Trainable& model, OnDone on_done)
    : model_(model), on_done_(std::move(on_done)) {}

TrainSteps::~TrainSteps() {
  for (const Step& step : steps_) step.loss.Await(kNoLimit).IgnoreError();
}

absl::Status TrainSteps::Begin(const TrainingBatch& batch) {
  while (status_.ok() && steps_.size() >= dist::Pipeline::kMostUnderWay)
    AwaitFirst();
  RETURN_IF_ERROR(status_);
  const Clock::time_point begin = Clock::now();
  steps_.push_back({model_.TrainStepAsync(batch), batch.inputs.dim(0), begin});
  // Such as those of a model that has none under way.
  while (status_.ok() && !steps_.empty() && steps_.front().loss.ready())
    AwaitFirst();
  return status_;
}

absl::Status TrainSteps::Finish() {
  while (status_.ok() && !steps_.empty()) AwaitFirst();
  return status_;
}

void TrainSteps::AwaitFirst() {
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  const absl::StatusOr<double> loss = step.loss.Await(kNoLimit);
  const auto since = std::max(step.begin, last_end_);
  last_end_ = Clock::now();
  const std::chrono::duration<double> took = last_end_ - since;
  status_ =
      loss.ok() ? on_done_({*loss, step.rows, took.count()}) : loss.status();
  if (status_.ok()) return;
  for (const Step& other : std::exchange(steps_, {}))
    other.loss.Await(kNoLimit).IgnoreError();
}

}  // namespace baton::examples
