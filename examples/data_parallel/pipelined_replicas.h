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

// How replicas are trained that are pipelines.
struct PipelinedReplicas {
  int stages = 2;          // of each, at a worker each
  int64_t split_size = 0;  // images of a micro-batch; 0: a quarter of a batch
  int64_t warm_up = 0;     // steps before those that are timed
  int64_t steps = 1;       // that are timed
  std::string trace = {};  // a file for a trace of a further step; empty: none
};

// Makes pipelines of the task's members, in their order, as many as there are
// workers for, that are replicas of each other, and trains them on random
// images, task.batch at each. The trainer is this process. Of the task, only
// model, optimizer, members, batch, image, graph and seed count.
absl::StatusOr<Measurement> TrainPipelines(rpc::Agent& agent,
                                           const std::string& variant,
                                           const ReplicaTask& task,
                                           const PipelinedReplicas& options);

}  // namespace baton::examples
