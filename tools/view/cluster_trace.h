// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/agent.h"
#include "tools/view/merged_trace.h"

namespace baton::tools {

// Traces all workers of a cluster for some time:
//   ClusterTrace trace(agent, agent.workers());
//   trace.Start(limit);
//   ... a step ...
//   RETURN_IF_ERROR(WriteOutput(path, MergedTrace(trace.Finish())));
// Compares the workers' clocks before and after. Leaves out workers that do not
// answer, with a warning. The agent, a worker's or an observer's, must outlive
// it. Confined to one thread.
class ClusterTrace {
 public:
  ClusterTrace(rpc::Agent& agent, const std::vector<rpc::WorkerInfo>& workers);

  // Begins the trace. It ends after `longest` even if this process dies. Each
  // worker keeps `limit` events.
  void Start(std::chrono::milliseconds longest, int64_t limit = 1'000'000);
  // Ends the trace and returns what all workers kept, by one clock.
  std::vector<WorkerTrace> Finish();

 private:
  void CompareClocks();

  rpc::Agent& agent_;
  struct Worker {
    rpc::WorkerInfo info;
    std::vector<ClockReading> readings = {};
    bool there = true;
  };
  std::vector<Worker> workers_;
};

// Traces all workers of the agent's cluster while `work` runs, and writes the
// trace to `path` if `work` returns OK.
absl::Status WriteTraceOf(rpc::Agent& agent, const std::string& path,
                          const std::function<absl::Status()>& work);

}  // namespace baton::tools
