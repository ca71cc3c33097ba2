// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/trainer.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/join.h"
#include "models/distributed/stock.h"
#include "rpc/cluster.h"
#include "rpc/spares.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"
#include "tools/compute.h"

namespace baton::examples {
namespace {

std::vector<std::string> NamesOf(const std::vector<rpc::WorkerInfo>& workers) {
  std::vector<std::string> names;
  for (const rpc::WorkerInfo& worker : workers) names.push_back(worker.name);
  return names;
}

}  // namespace

absl::Status CheckDType(const rpc::Compute& trainer,
                        const std::vector<rpc::WorkerInfo>& workers) {
  const std::string dtype = tools::DTypeFlag(trainer);
  if (dtype == tools::DTypeFlag({})) return absl::OkStatus();
  for (const rpc::WorkerInfo& worker : workers) {
    const std::string theirs = tools::DTypeFlag(worker.compute);
    if (theirs == dtype) continue;
    return tools::WrongFlag(
        "dtype", absl::StrCat(dtype, " is the trainer's, which has no stage, ",
                              "and ", worker.name, " computes in ", theirs,
                              ": give --dtype to the workers, as in baton-run ",
                              "--dtype=", dtype, " before the --"));
  }
  return absl::OkStatus();
}

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
  const std::vector<rpc::WorkerInfo> workers = rpc::OthersButSpares(*agent);
  const absl::Status told = CheckDType(agent->self().compute, workers);
  const absl::Status result =
      told.ok() ? train(*agent, NamesOf(workers)) : told;
  const absl::Status shutdown = agent->Shutdown();
  return result.ok() ? shutdown : result;
}

}  // namespace baton::examples
