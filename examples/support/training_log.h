// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples/support/event_file.h"

namespace baton::examples {

// Writes the figures of a training for TensorBoard: an event file in the folder
// `run` of the folder that --tensorboard names; without that flag, nothing.
// Errors do not end the training; the first is printed on stderr. Confined to
// one thread.
class TrainingLog {
 public:
  // Returns the learning rate by the number of steps done before.
  using RateOf = std::function<double(int64_t)>;

  // `items` names what is counted, such as "images". `first` is the number of
  // the first step; it is above 1 for a resumed training.
  TrainingLog(const std::string& run, std::string items, RateOf rate,
              int64_t first = 1);
  // The same for a rate that does not change.
  TrainingLog(const std::string& run, std::string items, double rate)
      : TrainingLog(run, std::move(items), [rate](int64_t) { return rate; }) {}

  // Call this after each step: writes "loss", "rate", and "<items> per second"
  // since the step before.
  void Step(double loss, int64_t items);
  // The same for programs that write only now and then, or write other figures,
  // too. `items` are those since the last call; if 0, no throughput is written.
  void Add(int64_t step, int64_t items, std::vector<Scalar> scalars);

 private:
  using Clock = std::chrono::steady_clock;
  const std::string items_;
  const RateOf rate_;
  std::unique_ptr<EventFile> file_;  // null: nothing is written
  int64_t next_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace baton::examples
