// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/cluster.h"
#include "rpc/collectives/collectives.h"
#include "rpc/rendezvous.h"
#include "rpc/worker.h"
#include "tests/support/toy_stages.h"

namespace baton::dist {

// What workers that stage_worker runs, each a process, can make.
inline void RegisterProcessStages(rpc::Registry& registry) {
  Register(registry);
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<testing::NoisyStage>(registry);
  RegisterModule<testing::DenseStage>(registry);
  rpc::RegisterCollectives(registry);
}

// Joins as such a process; a world size of 0 makes it one more.
inline absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinProcesses(
    const std::string& name, const std::string& rendezvous, int world_size,
    const rpc::Compute& compute = {}) {
  rpc::Registry registry;
  RegisterProcessStages(registry);
  rpc::ClusterOptions options;
  options.name = name;
  options.rendezvous = rendezvous;
  options.world_size = world_size == 0 ? rpc::kOneMore : world_size;
  options.device = compute.device;
  options.dtype = compute.dtype;
  options.agent.on_start = [](rpc::Agent& agent) {
    Attach(agent);
    rpc::AttachCollectives(agent);
  };
  return rpc::JoinCluster(std::move(options), std::move(registry));
}

}  // namespace baton::dist
