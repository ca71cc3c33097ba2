// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "examples/support/event_file.h"

namespace baton::examples {

// The figures of a training, for TensorBoard: an event file in the folder `run`
// of what --tensorboard names, and nothing without that flag. A training does
// not end for it: what cannot be written is told once, on stderr. Confined to
// one thread.
class TrainingLog {
 public:
  // The optimizer's rate, by the number of steps done before.
  using RateOf = std::function<double(int64_t)>;

  // `items`: what steps go through, such as "images"; `first`: the number of
  // the first step, of a training that is resumed.
  TrainingLog(const std::string& run, std::string items, RateOf rate,
              int64_t first = 1);

  // After each step: "loss", "rate", and "<items> per second" since the step
  // before.
  void Step(double loss, int64_t items);
  // The same where steps are looked at now and then, or have other figures
  // too: `items` are those since the last time; without any there is no
  // throughput.
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
