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

// The parameters of a dist::Optimizer that one worker has.
struct WorkerShares {
  rpc::WorkerInfo owner;
  std::vector<OptimizerShare> shares;
  std::vector<Future<RRef<ParameterList>>> lists;  // when they exist
};

// Asks the owners for the lists. The result is ordered by each owner's first
// appearance.
std::vector<WorkerShares> GroupByOwner(
    rpc::Agent& agent,
    const std::vector<std::vector<ParameterSource>>& sources_of_groups);

// Merges the states of all workers. InvalidArgument names an entry that occurs
// twice.
absl::StatusOr<optim::StateDict> MergeStates(
    const std::vector<optim::StateDict>& states);

// Splits "<parameter>.<name>" entries into one part for each list of parameter
// names. InvalidArgument names an entry that belongs to none of them.
absl::StatusOr<std::vector<optim::StateDict>> SplitState(
    const optim::StateDict& state,
    const std::vector<std::vector<std::string>>& parameters);

}  // namespace baton::dist
