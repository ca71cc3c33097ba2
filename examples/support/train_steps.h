// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>

#include "absl/status/status.h"
#include "examples/support/trainable.h"

namespace baton::examples {

// Trains a model with the next step already under way when one ends, so that
// workers do not wait for the trainer. Results are those of steps one after the
// other. Confined to one thread.
class TrainSteps {
 public:
  struct Done {
    double loss = 0;
    int64_t rows = 0;
    // Since it began or the step before it ended, whichever is later.
    double seconds = 0;
  };
  // Called with each step, in order, once it is over. An error that it returns
  // ends the training, as an error of a step does.
  using OnDone = std::function<absl::Status(const Done&)>;

  // The model must outlive it.
  TrainSteps(Trainable& model, OnDone on_done);
  ~TrainSteps();  // waits for the steps under way
  TrainSteps(const TrainSteps&) = delete;
  TrainSteps& operator=(const TrainSteps&) = delete;

  // Begins a step, and waits first if as many as possible are under way. After
  // the first error no step begins and none is under way; the error is returned
  // again.
  absl::Status Begin(const TrainingBatch& batch);
  // Waits until no step is under way. Call it before the model is saved or
  // evaluated.
  absl::Status Finish();

  int64_t under_way() const { return static_cast<int64_t>(steps_.size()); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    int64_t rows;
    Clock::time_point begin;
  };

  void AwaitFirst();
  void AwaitOthers();  // even if they fail

  Trainable& model_;
  const OnDone on_done_;
  std::deque<Step> steps_;  // steps under way
  Clock::time_point last_end_;
  absl::Status status_;
};

}  // namespace baton::examples
