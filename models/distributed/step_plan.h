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
  int32_t compute_threads = 0;  // 0: the worker's own setting
  static constexpr auto Fields() {
    return std::tuple{&StageSpec::index, &StageSpec::count,
                      &StageSpec::checkpoint, &StageSpec::compute_threads};
  }
};

// One step, as one stage is told.
struct StepPlan {
  uint64_t step = 0;  // counts up
  std::vector<Instruction> program;
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

// What a stage has to say when its program has run. Filled in by the last.
struct StageReport {
  double loss = 0;              // mean over the batch
  int64_t correct = 0;          // rows whose largest output is the target's
  std::vector<Tensor> outputs;  // of each micro-batch; only without training
  static constexpr auto Fields() {
    return std::tuple{&StageReport::loss, &StageReport::correct,
                      &StageReport::outputs};
  }
};

}  // namespace baton::dist
