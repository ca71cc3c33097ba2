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
  int64_t pushes = 300;  // per trainer
  std::chrono::milliseconds report_every{500};
  // Its steps are pushes per trainer; they are counted every `report_every`.
  Saving saving{};
};

// The state of a training, from the values that a reader pulled from the
// servers.
struct AccuracyPoint {
  double seconds = 0;
  int64_t version = 0;
  double accuracy = 0;
  int64_t trainers = 0;  // now training
};

struct AccuracyCurve {
  std::vector<AccuracyPoint> points;  // the last one is the end
  double loss = 0;                    // mean of the trainers' last losses
  int64_t pushes = 0;                 // by trainers that were not lost
  int64_t lost = 0;                   // number of trainers
  int64_t resumed_from = 0;           // step
};

// Trains a LeNet in one mode, on all workers but the servers. Calls `on_point`
// with each point immediately. If trainers are lost, continues without them,
// and workers that join push as often as the slowest trainer still must;
// returns Unavailable when all trainers are lost. A resumed training in
// bulk-synchronous mode with as many trainers gives the same bits as one that
// was not interrupted.
absl::StatusOr<AccuracyCurve> TrainLeNet(
    rpc::Agent& agent, const Crew& crew, const AccuracyRun& run,
    const std::function<void(const AccuracyPoint&)>& on_point);

// Measures pushes of gradients shaped as those of "lenet" (of the PyTorch
// tutorial) or "resnet50"; each push pulls the new values.
absl::StatusOr<PushFigures> MeasurePushes(rpc::Agent& agent, const Crew& crew,
                                          dist::ServerOptions options,
                                          const std::string& gradients,
                                          int64_t pushes);

}  // namespace baton::examples
