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

// A trace of a cluster, from its begin to its end:
//   ClusterTrace trace(agent, agent.workers());
//   trace.Start(limit);
//   ... a step ...
//   RETURN_IF_ERROR(WriteOutput(path, MergedTrace(trace.Finish())));
// The clocks are compared before and after. Workers that do not answer are left
// out, with a warning. The agent, one of the workers or an observer, must
// outlive it. Confined to one thread.
class ClusterTrace {
 public:
  ClusterTrace(rpc::Agent& agent, const std::vector<rpc::WorkerInfo>& workers);

  // Ends by itself after `longest`, should this process die; each worker keeps
  // `limit` events.
  void Start(std::chrono::milliseconds longest, int64_t limit = 1'000'000);
  // What all kept, by one clock.
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

// Traces all workers of the agent's cluster while `work` runs, and writes that
// if the work is OK.
absl::Status WriteTraceOf(rpc::Agent& agent, const std::string& path,
                          const std::function<absl::Status()>& work);

}  // namespace baton::tools
