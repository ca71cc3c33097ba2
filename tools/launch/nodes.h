// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/agent.h"
#include "rpc/cluster.h"
#include "tools/launch/run_inbox.h"

namespace baton::tools {

struct NodesOptions {
  // How baton-run joins the others: their rendezvous, the name of the run's
  // cluster, the address to listen at, credentials and how long to wait. Nodes
  // fills in name, rank and world size.
  rpc::ClusterOptions join;
  int node = 0;
  int nodes = 1;
  int workers = 1;  // per node
  // Called at node 0 when a worker of another node has ended; `how` is as for
  // RunPlan::on_end. Runs on another thread.
  std::function<void(const std::string& name, const std::string& how)> on_end;
};

// Returns the name of a node's `number`-th worker, counted from 0. Each node
// has `workers` workers.
std::string WorkerName(int node, int workers, int number);

// The baton-run processes of one run on several machines, called nodes. They
// are workers, node0, node1, ..., of their own cluster, named after the run's
// with ".nodes" appended. Node 0 runs the trainer and decides when the run
// ends. Thread-compatible.
class Nodes {
 public:
  // Waits until all have joined. Then puts events of other nodes into `inbox`:
  // at node 0, lost workers, one by one or with their node; at other nodes, the
  // end of the run, which includes the loss of node 0. Errors are those of
  // JoinCluster.
  static absl::StatusOr<std::unique_ptr<Nodes>> Join(
      NodesOptions options, std::shared_ptr<RunInbox> inbox);
  virtual ~Nodes() = default;

  // Tells node 0, from another node; see RunPlan::on_end and on_lost.
  virtual void WorkerEnded(const std::string& name, const std::string& how) = 0;
  virtual void WorkerLost(const std::string& name,
                          const std::string& event) = 0;
  // Call this when RunAll has returned `code`. At node 0, tells the others,
  // which then end; returns when they have, or after `limit`. At another node,
  // first waits until node 0 has heard all that it was told.
  virtual void End(int code, std::chrono::milliseconds limit) = 0;
};

}  // namespace baton::tools
