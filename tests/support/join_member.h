// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/device.h"
#include "rpc/cluster.h"
#include "rpc/collectives/collectives.h"

namespace baton::testing {

// With BATON_TEST_DEVICE=cuda, returns another GPU for each of w0, w1, ...;
// else the CPU.
inline Device DeviceOfMember(const std::string& name) {
  const char* device = std::getenv("BATON_TEST_DEVICE");
  if (device == nullptr || std::string(device) != "cuda") return Device::Cpu();
  return Device::Cuda(std::atoi(name.c_str() + 1));
}

// Joins as the arguments of tests/support/member_processes.h say.
inline absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinAsMember(char** argv) {
  rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.world_size = std::atoi(argv[3]);
  options.device = DeviceOfMember(options.name);
  options.agent.worker_threads = 2;
  // [join]
  rpc::Registry registry;
  rpc::RegisterCollectives(registry);
  options.agent.on_start = rpc::AttachCollectives;
  return rpc::JoinCluster(std::move(options), std::move(registry));
  // [end]
}

}  // namespace baton::testing
