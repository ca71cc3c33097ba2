// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rpc/worker.h"

namespace baton::rpc {

class Agent;

// Spares are workers that hold nothing until one of them takes the place of a
// lost worker. They are recognized by their names, join a cluster that has met
// as one more worker (kOneMore), and join and leave like other workers:
// Agent::workers includes them.

// "spare1", "spare2", ...
std::string SpareName(int number);
bool IsSpare(const WorkerInfo& worker);

// Both are by rank and exclude self.
std::vector<WorkerInfo> Spares(const Agent& agent);
std::vector<WorkerInfo> OthersButSpares(const Agent& agent);

}  // namespace baton::rpc
