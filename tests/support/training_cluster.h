// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "rpc/agent.h"
#include "tests/support/local_cluster.h"

namespace baton::testing {

// Agents of one process with distributed autograd, named alice, bob, carol,
// dave. The destructor expects that no context is open, no call under way and
// no object owned on any of them. Confined to one thread.
class TrainingCluster {
 public:
  using AddTypes = std::function<void(rpc::Registry&)>;
  // Workers that `compute` does not name compute on TestDevice().
  TrainingCluster(size_t workers, AddTypes add_types,
                  TransportKind transports = TransportKind::kInProcess,
                  std::map<std::string, rpc::Compute> compute = {},
                  std::shared_ptr<rpc::FaultPlan> faults = nullptr);
  ~TrainingCluster();

  rpc::Agent& at(const std::string& name) { return cluster_[name]; }
  rpc::Agent& alice() { return at("alice"); }
  // Ends a worker as if its process died. Its Agent object stays, because
  // contexts may use it.
  void Kill(const std::string& name);
  // Waits until no worker has a context open; false after five seconds.
  bool NoContextsLeft();

 private:
  std::set<std::string> alive_;
  LocalCluster cluster_;
};

}  // namespace baton::testing
