// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rpc/worker.h"

namespace baton::rpc {

class Agent;

// Spares are workers that nobody gives anything to hold, until one of them
// takes the place of a worker that is lost. They are named so, join a cluster
// that has met as one more (kOneMore), and come and go as other workers do:
// Agent::workers has them, too.

// "spare1", "spare2", ...
std::string SpareName(int number);
bool IsSpare(const WorkerInfo& worker);

// By rank; self is in neither.
std::vector<WorkerInfo> Spares(const Agent& agent);
std::vector<WorkerInfo> OthersButSpares(const Agent& agent);

}  // namespace baton::rpc
