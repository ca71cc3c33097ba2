// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker in a process of its own that does what peer/keeper.h says:
//   worker_peer NAME RENDEZVOUS WORLD_SIZE LEASE_MS
// Writes "joined" or what went wrong on a line, and ends when its input does.

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "rpc/cluster.h"
#include "tests/rpc/peer/keeper.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  baton::rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.world_size = std::atoi(argv[3]);
  options.agent.lease = std::chrono::milliseconds(std::atoi(argv[4]));
  options.agent.worker_threads = 2;
  baton::rpc::Registry registry;
  baton::testing::FillKeeper(registry);
  auto agent = JoinCluster(std::move(options), std::move(registry));
  std::cout << (agent.ok() ? "joined" : agent.status().ToString()) << std::endl;
  if (!agent.ok()) return 1;
  while (std::getchar() != EOF) {
  }
  return 0;
}
