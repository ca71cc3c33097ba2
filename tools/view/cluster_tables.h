// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/debug_info.h"
#include "rpc/view.h"

namespace baton::tools {

// What one worker of a cluster said of itself, or why it said nothing.
struct WorkerReport {
  rpc::WorkerInfo worker;
  absl::Status status = {};
  rpc::DebugInfo info = {};  // where the status is OK
  bool gone = false;         // it was there before (LiveTables)
};

// The tables of batonctl, over all workers that answered, by rank. Times are in
// ms, sizes in bytes.
rpc::View WorkersTable(const std::vector<WorkerReport>& reports);
// Calls under way, the oldest first: each at its caller and at its callee.
rpc::View CallsTable(const std::vector<WorkerReport>& reports);
// Objects and who holds them, the oldest first.
rpc::View ObjectsTable(const std::vector<WorkerReport>& reports);
rpc::View ChannelsTable(const std::vector<WorkerReport>& reports);
// How tensors travel beside those channels, or why not: by sender.
rpc::View TensorChannelsTable(const std::vector<WorkerReport>& reports);
// Traffic and latency by worker, peer and method, the most calls first.
rpc::View MethodsTable(const std::vector<WorkerReport>& reports);
// A table that a layer above rpc contributes (Agent::AddView), with a first
// column for the worker; without columns where no worker has it.
rpc::View ContributedTable(const std::vector<WorkerReport>& reports,
                           const std::string& name);

// Those of one command ("status", "rrefs", "contexts", "channels"); empty for
// another word.
std::vector<rpc::View> TablesOf(const std::string& command,
                                const std::vector<WorkerReport>& reports);

}  // namespace baton::tools
