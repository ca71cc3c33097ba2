// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "rpc/cluster.h"
#include "rpc/collectives/collectives.h"

namespace baton::testing {

// Joins as a program of tests/support/member_processes.h was told to.
inline absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinAsMember(char** argv) {
  rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.world_size = std::atoi(argv[3]);
  options.agent.worker_threads = 2;
  options.agent.on_start = rpc::AttachCollectives;
  rpc::Registry registry;
  rpc::RegisterCollectives(registry);
  return JoinCluster(std::move(options), std::move(registry));
}

}  // namespace baton::testing
