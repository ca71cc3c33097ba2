// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/parameter_server/lenet_trainer.h"
#include "examples/support/measurement.h"
#include "examples/support/participants.h"
#include "examples/support/pushing.h"
#include "examples/support/saving.h"
#include "models/distributed/server/options.h"
#include "rpc/agent.h"

namespace baton::examples {

struct AccuracyRun {
  dist::ServerOptions options;
  LeNetTask task;
  int64_t pushes = 300;  // of each trainer
  std::chrono::milliseconds report_every{500};
  // A step is a push of each trainer. Looked at every `report_every`.
  Saving saving{};
};

// How far a training was, by what a reader pulled from the servers meanwhile.
struct AccuracyPoint {
  double seconds = 0;
  int64_t version = 0;
  double accuracy = 0;
  int64_t trainers = 0;  // that are at it
};

struct AccuracyCurve {
  std::vector<AccuracyPoint> points;  // the last one of the end
  double loss = 0;                    // mean of the trainers' last ones
  int64_t pushes = 0;                 // of those that were not lost
  int64_t lost = 0;                   // trainers, with their workers
  int64_t resumed_from = 0;           // step
};

// Trains a LeNet in one mode, on all workers but the servers; `on_point` hears
// of each point at once. Goes on without trainers that are lost, and has
// workers that join push what the slowest trainer has still to; Unavailable
// when all trainers are lost. What is resumed in bulk-synchronous mode, with as
// many trainers, goes on with the bits of a training that did not stop.
absl::StatusOr<AccuracyCurve> TrainLeNet(
    rpc::Agent& agent, const Crew& crew, const AccuracyRun& run,
    const std::function<void(const AccuracyPoint&)>& on_point);

// Gradients as of "lenet" (the PyTorch tutorial's) or "resnet50", the new
// values pulled with each.
absl::StatusOr<PushFigures> MeasurePushes(rpc::Agent& agent, const Crew& crew,
                                          dist::ServerOptions options,
                                          const std::string& gradients,
                                          int64_t pushes);

}  // namespace baton::examples
