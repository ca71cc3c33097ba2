// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "core/device.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/support/toy_stages.h"

namespace baton::dist {

// What the workers of pipeline_processes_test.cc, each a process, can make.
inline void RegisterProcessStages(rpc::Registry& registry) {
  Register(registry);
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<testing::NoisyStage>(registry);
}

// Joins as such a process; a world size of 0 makes it one more.
inline absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinProcesses(
    const std::string& name, const std::string& rendezvous, int world_size,
    Device device = Device::Cpu()) {
  rpc::Registry registry;
  RegisterProcessStages(registry);
  rpc::ClusterOptions options;
  options.name = name;
  options.rendezvous = rendezvous;
  options.world_size = world_size == 0 ? rpc::kOneMore : world_size;
  options.device = device;
  options.agent.on_start = Attach;
  return rpc::JoinCluster(std::move(options), std::move(registry));
}

}  // namespace baton::dist
