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
  // The images for points, at most `test_images` of them (0: all).
  std::string test_data{};
  int64_t test_images = 0;
  std::chrono::milliseconds report_every{2000};
};

// The progress of a training.
struct BatchPoint {
  double seconds = 0;
  double accuracy = 0;
  BatchStatus status;
};

struct BatchOutcome {
  std::vector<BatchPoint> points;  // the last one is the end
  int64_t begun = 0;               // number of trainers
  int64_t lost = 0;                // number of trainers lost
};

// Trains until the last step, or until `on_point`, which is called with each
// point, returns false. Lost trainers are left out, and workers that join get
// one. Returns Unavailable, with the last trainer's error, if none is left.
absl::StatusOr<BatchOutcome> TrainByBatches(
    rpc::Agent& agent, const BatchRun& run,
    const std::function<bool(const BatchPoint&)>& on_point);

// Measures reports per second: the run's trainers report gradients that they do
// not compute, and get the state after the step that all of them make.
absl::StatusOr<PushFigures> MeasureReports(rpc::Agent& agent,
                                           const BatchRun& run, int64_t pushes);

}  // namespace baton::examples
