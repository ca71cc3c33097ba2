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
  // How baton-run joins the others: where they meet, the name of the run's
  // cluster, where it listens, its credentials and how long it waits. Its name,
  // rank and world size are filled in.
  rpc::ClusterOptions join;
  int node = 0;
  int nodes = 1;
  int workers = 1;  // of each node
  // At node 0: a worker of another node has ended; `how` as in
  // RunPlan::on_end. Runs on another thread.
  std::function<void(const std::string& name, const std::string& how)> on_end;
};

// The name of the cluster's `number`-th worker of a node, from 0: each node has
// as many.
std::string WorkerName(int node, int workers, int number);

// The baton-runs of one run over several machines, or nodes. They are workers,
// node0, node1, ..., of a cluster of their own: that of the run with ".nodes"
// behind its name. Node 0 runs the trainer and decides when the run ends.
// Thread-compatible.
class Nodes {
 public:
  // Waits until all have come. What the others do is put into `inbox`: at node
  // 0, workers that are lost, one by one or with their node; at others, the end
  // of the run, also if node 0 is lost. Errors as JoinCluster.
  static absl::StatusOr<std::unique_ptr<Nodes>> Join(
      NodesOptions options, std::shared_ptr<RunInbox> inbox);
  virtual ~Nodes() = default;

  // At a node other than 0, which tells node 0: RunPlan::on_end and on_lost.
  virtual void WorkerEnded(const std::string& name, const std::string& how) = 0;
  virtual void WorkerLost(const std::string& name,
                          const std::string& event) = 0;
  // RunAll has returned `code`. At node 0 the others hear it and end; returns
  // when they have, or after `limit`. At others, node 0 first hears all that it
  // was told.
  virtual void End(int code, std::chrono::milliseconds limit) = 0;
};

}  // namespace baton::tools
