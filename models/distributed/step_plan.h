// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <tuple>
#include <vector>

#include "core/tensor.h"
#include "models/distributed/schedule.h"
#include "rpc/codec.h"

// What a trainer and the stages of its pipeline tell each other.
namespace baton::dist {

enum class Loss : uint8_t {
  kNone = 0,
  kCrossEntropy = 1,  // targets: i64 [N] labels
  kMse = 2,           // targets: like the outputs
};

struct StageSpec {
  int32_t index = 0;
  int32_t count = 1;
  // Keeps only the inputs of micro-batches and runs forwards again before
  // backwards, with the same random numbers: less memory for about a third more
  // time.
  bool checkpoint = false;
  static constexpr auto Fields() {
    return std::tuple{&StageSpec::index, &StageSpec::count,
                      &StageSpec::checkpoint};
  }
};

// One step, as one worker is told.
struct StepPlan {
  uint64_t step = 0;  // counts up
  Program program;
  int32_t micro_batches = 0;
  int64_t rows = 0;        // of the whole batch
  int64_t split_size = 0;  // of every micro-batch but maybe the last
  bool training = false;
  Loss loss = Loss::kNone;
  std::chrono::milliseconds time_left{};
  static constexpr auto Fields() {
    return std::tuple{&StepPlan::step,          &StepPlan::program,
                      &StepPlan::micro_batches, &StepPlan::rows,
                      &StepPlan::split_size,    &StepPlan::training,
                      &StepPlan::loss,          &StepPlan::time_left};
  }
};

// What the last stage has to say of a step.
struct StageReport {
  double loss = 0;              // mean over the batch
  int64_t correct = 0;          // rows whose largest output is the target's
  std::vector<Tensor> outputs;  // of each micro-batch; only without training
  static constexpr auto Fields() {
    return std::tuple{&StageReport::loss, &StageReport::correct,
                      &StageReport::outputs};
  }
};

// What a worker has to say when its program has run.
struct GroupReport {
  StageReport last;  // empty unless the worker has the last stage
  // That each instruction computed, without its waits, in the program's order.
  std::vector<double> seconds;
  double until_end_s = 0;  // from when the worker was told to the program's end
  static constexpr auto Fields() {
    return std::tuple{&GroupReport::last, &GroupReport::seconds,
                      &GroupReport::until_end_s};
  }
};

}  // namespace baton::dist
