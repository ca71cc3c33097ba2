// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/train_steps.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace baton::examples {

TrainSteps::TrainSteps(Trainable& model, OnDone on_done)
    : model_(model), on_done_(std::move(on_done)) {}

TrainSteps::~TrainSteps() { AwaitOthers(); }

absl::Status TrainSteps::Begin(const TrainingBatch& batch) {
  const size_t most = model_.most_under_way();
  while (status_.ok() && steps_.size() >= most) AwaitFirst();
  RETURN_IF_ERROR(status_);
  const Clock::time_point begin = Clock::now();
  status_ = model_.BeginStep(batch);
  if (!status_.ok()) {
    AwaitOthers();
    return status_;
  }
  steps_.push_back({batch.inputs.dim(0), begin});
  if (most == 1) AwaitFirst();
  return status_;
}

absl::Status TrainSteps::Finish() {
  while (status_.ok() && !steps_.empty()) AwaitFirst();
  return status_;
}

void TrainSteps::AwaitFirst() {
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  const absl::StatusOr<double> loss = model_.AwaitStep();
  const auto since = std::max(step.begin, last_end_);
  last_end_ = Clock::now();
  const std::chrono::duration<double> took = last_end_ - since;
  status_ =
      loss.ok() ? on_done_({*loss, step.rows, took.count()}) : loss.status();
  if (!status_.ok()) AwaitOthers();
}

void TrainSteps::AwaitOthers() {
  for (; !steps_.empty(); steps_.pop_front()) model_.AwaitStep().IgnoreError();
}

}  // namespace baton::examples
