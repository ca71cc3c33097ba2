// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// One process of a cluster that rpc_soak works:
//   soak_worker NAME RENDEZVOUS WORLD_SIZE
// Writes "joined", then does what stands on the lines of its input:
//   run CALLS RREFS SEED   a SoakLoad; writes "done", or the error
//   check                  writes "idle", or "left" and what is
// Ends when its input does, with 0.

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "rpc/cluster.h"
#include "tests/rpc/peer/report_idle.h"
#include "tests/rpc/soak/soak_load.h"

namespace baton::testing {
namespace {

void Serve(rpc::Agent& agent) {
  SoakLoad load(agent);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "check") {
      ReportIdle(agent);
      continue;
    }
    int calls = 0, rrefs = 0;
    uint64_t seed = 0;
    words >> calls >> rrefs >> seed;
    const absl::Status status = load.Run(calls, rrefs, seed);
    std::cout << (status.ok() ? "done" : status.ToString()) << std::endl;
  }
}

int Work(rpc::ClusterOptions options) {
  rpc::Registry registry;
  SoakLoad::FillRegistry(registry);
  auto agent = JoinCluster(std::move(options), std::move(registry));
  std::cout << (agent.ok() ? "joined" : agent.status().ToString()) << std::endl;
  if (!agent.ok()) return 1;
  Serve(**agent);
  return (*agent)->Shutdown().ok() ? 0 : 1;
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  baton::rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.world_size = std::atoi(argv[3]);
  return baton::testing::Work(std::move(options));
}
