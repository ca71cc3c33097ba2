// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/cluster_program.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "core/status.h"
#include "rpc/cluster.h"
#include "rpc/collectives/collectives.h"
#include "tools/cluster_flags.h"
#include "tools/daemon.h"

namespace baton::examples {

absl::Status RunInCluster(
    rpc::Registry registry, const std::function<absl::Status()>& check,
    const std::function<absl::Status(rpc::Agent&)>& lead) {
  ASSIGN_OR_RETURN(rpc::ClusterOptions options,
                   tools::ClusterOptionsFromFlags("trainer"));
  options.agent.on_start = [](rpc::Agent& agent) {
    dist::Attach(agent);
    rpc::AttachCollectives(agent);
  };
  const bool leads = options.name == "trainer";
  if (leads) RETURN_IF_ERROR(CatchErrors(check));  // the others were given none
  tools::StopSignal stop;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   rpc::JoinCluster(std::move(options), std::move(registry)));
  absl::Status result;
  if (leads) {
    result = CatchErrors([&] { return lead(*agent); });
  } else {
    stop.Wait();
  }
  const absl::Status shutdown = agent->Shutdown();
  return result.ok() ? shutdown : result;
}

}  // namespace baton::examples
