// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/trainer.h"

#include <memory>
#include <utility>

#include "core/status.h"
#include "models/distributed/join.h"
#include "models/distributed/stock.h"
#include "rpc/cluster.h"
#include "rpc/spares.h"
#include "tools/cluster_flags.h"

namespace baton::examples {
namespace {

std::vector<std::string> OtherWorkers(const rpc::Agent& agent) {
  std::vector<std::string> names;
  for (const rpc::WorkerInfo& worker : rpc::OthersButSpares(agent))
    names.push_back(worker.name);
  return names;
}

}  // namespace

rpc::Registry MakeRegistry() {
  rpc::Registry registry;
  dist::RegisterStock(registry);
  return registry;
}

absl::Status RunTrainer(
    const std::function<
        absl::Status(rpc::Agent&, std::vector<std::string> workers)>& train) {
  ASSIGN_OR_RETURN(rpc::ClusterOptions cluster,
                   tools::ClusterOptionsFromFlags("trainer"));
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   dist::Join(std::move(cluster)));
  const absl::Status result = train(*agent, OtherWorkers(*agent));
  const absl::Status shutdown = agent->Shutdown();
  return result.ok() ? shutdown : result;
}

}  // namespace baton::examples
