// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/parameter_server_batch/batch_server.h"
#include "examples/support/pushing.h"
#include "rpc/agent.h"

namespace baton::examples {

struct BatchRun {
  BatchTask task;
  std::string server{};                 // worker
  std::vector<std::string> trainers{};  // workers; those that join train, too
  // The model is looked at on these, as many as `test_images` (0: all).
  std::string test_data{};
  int64_t test_images = 0;
  std::chrono::milliseconds report_every{2000};
};

// How far the training was.
struct BatchPoint {
  double seconds = 0;
  double accuracy = 0;
  BatchStatus status;
};

struct BatchOutcome {
  std::vector<BatchPoint> points;  // the last one of the end
  int64_t begun = 0;               // trainers
  int64_t lost = 0;                // of these, with their workers
};

// Trains to the last step, or until `on_point`, which hears of each point at
// once, gives false. Trainers that are lost are left out, and workers that join
// get one. Unavailable, with what the last one said, when none is left.
absl::StatusOr<BatchOutcome> TrainByBatches(
    rpc::Agent& agent, const BatchRun& run,
    const std::function<bool(const BatchPoint&)>& on_point);

// How often the run's trainers report gradients of its model, which they do not
// compute, and are given the state that the step of all of them leaves.
absl::StatusOr<PushFigures> MeasureReports(rpc::Agent& agent,
                                           const BatchRun& run, int64_t pushes);

}  // namespace baton::examples
