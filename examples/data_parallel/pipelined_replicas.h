// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/data_parallel/replica.h"
#include "examples/support/measurement.h"
#include "rpc/agent.h"

namespace baton::examples {

// How to train replicas that are pipelines.
struct PipelinedReplicas {
  int stages = 2;          // per replica, each at its own worker
  int64_t split_size = 0;  // images of a micro-batch; 0: a quarter of a batch
  int64_t warm_up = 0;     // steps that are not timed
  int64_t steps = 1;       // timed steps
  std::string trace = {};  // the file for a trace of one more step; empty: none
};

// Makes pipelines out of the task's members, in their order, as many as there
// are workers for, and trains them as replicas on random images, task.batch
// images each. This process is the trainer. Uses only these fields of the task:
// model, optimizer, members, batch, image, graph and seed.
absl::StatusOr<Measurement> TrainPipelines(rpc::Agent& agent,
                                           const std::string& variant,
                                           const ReplicaTask& task,
                                           const PipelinedReplicas& options);

}  // namespace baton::examples
