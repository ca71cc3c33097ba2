// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker of a cluster of three that keeps shards until it is killed, or its
// input ends: shard_server NAME RENDEZVOUS.

#include <unistd.h>

#include <cstdio>

#include "autograd/distributed/context.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/cluster.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  baton::rpc::Registry registry;
  baton::dist::Register(registry);
  baton::dist::RegisterParameterServers(registry);
  baton::rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.world_size = 3;
  options.agent.on_start = baton::dist::Attach;
  const auto agent =
      baton::rpc::JoinCluster(std::move(options), std::move(registry));
  if (!agent.ok()) {
    std::fprintf(stderr, "%s\n", agent.status().ToString().c_str());
    return 1;
  }
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
