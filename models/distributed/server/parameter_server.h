// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "models/distributed/server/directory.h"
#include "models/distributed/server/options.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::dist {

// Every worker's registry needs it.
void RegisterParameterServers(rpc::Registry& registry);

// Parameters that servers keep and step while any number of trainers push
// gradients and pull values: docs/parameter_server.md.
//
//   ASSIGN_OR_RETURN(auto servers, dist::ParameterServers::Make(
//       agent, {"worker1", "worker2"}, {.rule = ops::SgdRule{.lr = 0.1}},
//       {{"fc.weight", weight}, {"fc.bias", bias}}));
//   ... Train(servers->directory()) at each trainer, which does
//   ASSIGN_OR_RETURN(auto client,
//                    dist::ServerClient::Join(agent, directory, rank));
//
// Its end lets go of the shards, which end with the last trainer's client. Must
// not outlive the agent. Thread-compatible.
class ParameterServers {
 public:
  // Makes a shard at each server, with these values, f32; where there are
  // backups each at the server after it. Waits as long as the agent's default
  // timeout.
  static absl::StatusOr<std::unique_ptr<ParameterServers>> Make(
      rpc::Agent& agent, const std::vector<std::string>& servers,
      const ServerOptions& options,
      const std::vector<std::pair<std::string, Tensor>>& values);
  ~ParameterServers();
  ParameterServers(const ParameterServers&) = delete;
  ParameterServers& operator=(const ParameterServers&) = delete;

  // What trainers, wherever they are, find the servers by.
  const RRef<ServerDirectory>& directory() const { return directory_; }

 private:
  explicit ParameterServers(std::shared_ptr<ServerDirectory> local)
      : local_(std::move(local)) {}

  const std::shared_ptr<ServerDirectory> local_;
  RRef<ServerDirectory> directory_;
};

}  // namespace baton::dist
