// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
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

  std::vector<int32_t> Handles() const;
};

// Asks the owners for the lists. In the order in which owners first appear.
std::vector<WorkerShares> GroupByOwner(
    rpc::Agent& agent, const std::vector<ParameterSource>& sources);

// Cuts a state named "<handle>.<parameter>.<name>" into `parts` by
// `part_of[handle]`. InvalidArgument names a key that fits no handle.
absl::StatusOr<std::vector<optim::StateDict>> SplitState(
    const optim::StateDict& state, const std::map<int32_t, size_t>& part_of,
    size_t parts);

}  // namespace baton::dist
