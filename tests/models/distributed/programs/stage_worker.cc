// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker of a cluster that has stages of pipelines until it is killed, or its
// input ends: stage_worker NAME RENDEZVOUS COMPUTE [WORLD_SIZE], COMPUTE as
// rpc::Compute has it. Of three workers where no number is given; 0: it is one
// more.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/precision.h"
#include "rpc/worker.h"
#include "tests/models/distributed/process_stages.h"

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const auto compute = baton::rpc::Compute::Parse(argv[3]);
  if (!compute.ok()) return 2;
  baton::SetDeterministic(true);
  const auto agent = baton::dist::JoinProcesses(
      argv[1], argv[2], argc == 4 ? 3 : std::atoi(argv[4]), *compute);
  if (!agent.ok()) {
    std::fprintf(stderr, "%s\n", agent.status().ToString().c_str());
    return 1;
  }
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
