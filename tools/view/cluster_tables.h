// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/debug_info.h"
#include "rpc/view.h"

namespace baton::tools {

// A worker's debug information, or the error of asking for it.
struct WorkerReport {
  rpc::WorkerInfo worker;
  absl::Status status = {};
  rpc::DebugInfo info = {};  // if the status is OK
  bool gone = false;  // it was there before and is missing now (LiveTables)
};

// These make batonctl's tables of all workers that answered, by rank. Times are
// in ms, sizes in bytes.
rpc::View WorkersTable(const std::vector<WorkerReport>& reports);
// Lists calls under way, the oldest first, both at the caller and at the
// callee.
rpc::View CallsTable(const std::vector<WorkerReport>& reports);
// Lists objects and their holders, the oldest first.
rpc::View ObjectsTable(const std::vector<WorkerReport>& reports);
rpc::View ChannelsTable(const std::vector<WorkerReport>& reports);
// Lists, by sender, by which tensor channels tensors travel, or why they do
// not.
rpc::View TensorChannelsTable(const std::vector<WorkerReport>& reports);
// Lists traffic and latency by worker, peer and method, the most calls first.
rpc::View MethodsTable(const std::vector<WorkerReport>& reports);
// Returns a table that a layer above rpc adds (Agent::AddView), with a first
// column for the worker; without columns if no worker has it.
rpc::View ContributedTable(const std::vector<WorkerReport>& reports,
                           const std::string& name);

// Returns the tables of a command ("status", "rrefs", "contexts", "channels");
// an empty list for another word.
std::vector<rpc::View> TablesOf(const std::string& command,
                                const std::vector<WorkerReport>& reports);

}  // namespace baton::tools
