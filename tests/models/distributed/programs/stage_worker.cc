// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker of a cluster that has stages of pipelines until it is killed, or its
// input ends: stage_worker NAME RENDEZVOUS DEVICE [WORLD_SIZE]. Of three
// workers where no number is given; 0: it is one more.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "autograd/distributed/context.h"
#include "core/device.h"
#include "core/precision.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/models/distributed/process_stages.h"

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const auto device = baton::Device::Parse(argv[3]);
  if (!device.ok()) return 2;
  baton::SetDeterministic(true);
  baton::rpc::Registry registry;
  baton::dist::RegisterProcessStages(registry);
  baton::rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.device = *device;
  options.world_size = argc == 4 ? 3 : std::atoi(argv[4]);
  if (options.world_size == 0) options.world_size = baton::rpc::kOneMore;
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
