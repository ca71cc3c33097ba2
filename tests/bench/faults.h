// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/host_network.h"
#include "tests/support/process_cluster.h"

// Faults of workers, for programs that measure what they cost.
namespace baton::bench {

// A worker of a cluster, which a fault hits.
struct Victim {
  testing::ProcessCluster& processes;
  std::string worker;
  testing::HostNetwork* network = nullptr;  // null: all are on one host
  int host = 0;                             // of the worker, in that
};

// What happens to a worker, and then what a launcher does about it; returns
// when it is over.
struct Fault {
  std::string kind;  // for people
  bool needs_network = false;
  std::function<void(const Victim&)> happens;
};

// "kill": it is killed, of which a launcher tells, and started again.
// "stopN": its process is stopped for N seconds.
// "partitionN": its host's packets, to it and from it, are lost for N seconds.
// "deafN": only those to it.
using FaultNames = std::vector<std::string>;
absl::StatusOr<std::vector<Fault>> FaultsOf(const FaultNames& names);

// One of them does.
bool NeedNetwork(const std::vector<Fault>& faults);

}  // namespace baton::bench
