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

// Trains a model so that the next step is under way when one ends: workers then
// wait for no trainer in between. What is learnt is what steps one after the
// other would learn. Confined to one thread.
class TrainSteps {
 public:
  struct Done {
    double loss = 0;
    int64_t rows = 0;
    double seconds = 0;  // since it began, or the one before it ended, if later
  };
  // Told of each step, in their order, once it is over. The training ends with
  // an error of it as with one of a step.
  using OnDone = std::function<absl::Status(const Done&)>;

  // The model outlives it.
  TrainSteps(Trainable& model, OnDone on_done);
  ~TrainSteps();  // waits for the steps under way
  TrainSteps(const TrainSteps&) = delete;
  TrainSteps& operator=(const TrainSteps&) = delete;

  // Begins a step, once fewer are under way than may be. After the first error,
  // which is returned again, no step begins and none is under way.
  absl::Status Begin(const TrainingBatch& batch);
  // Until no step is under way: before the model is saved or evaluated.
  absl::Status Finish();

  int64_t under_way() const { return static_cast<int64_t>(steps_.size()); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    int64_t rows;
    Clock::time_point begin;
  };

  void AwaitFirst();
  void AwaitOthers();  // whatever becomes of them

  Trainable& model_;
  const OnDone on_done_;
  std::deque<Step> steps_;  // that are under way
  Clock::time_point last_end_;
  absl::Status status_;
};

}  // namespace baton::examples
