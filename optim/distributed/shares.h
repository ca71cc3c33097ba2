// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/distributed/parameter_list.h"
#include "core/future.h"
#include "optim/distributed/local_optimizer.h"
#include "optim/optimizer.h"

namespace baton::dist {

// What one worker has of the parameters that a dist::Optimizer is for.
struct WorkerShares {
  rpc::WorkerInfo owner;
  std::vector<OptimizerShare> shares;
  Future<std::vector<bool>> listed;  // when the shares' lists are there
};

// Asks the owners for the lists. In the order in which owners first appear.
std::vector<WorkerShares> GroupByOwner(
    rpc::Agent& agent,
    const std::vector<std::vector<ParameterSource>>& sources_of_groups);

// All workers' states in one. InvalidArgument names an entry that two have.
absl::StatusOr<optim::StateDict> MergeStates(
    const std::vector<optim::StateDict>& states);

// Cuts "<parameter>.<name>" entries into one part for each list of parameters'
// names. InvalidArgument names an entry of none of them.
absl::StatusOr<std::vector<optim::StateDict>> SplitState(
    const optim::StateDict& state,
    const std::vector<std::vector<std::string>>& parameters);

}  // namespace baton::dist
