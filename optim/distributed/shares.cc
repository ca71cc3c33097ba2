// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/shares.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace baton::dist {

std::vector<int32_t> WorkerShares::Handles() const {
  std::vector<int32_t> handles;
  for (const OptimizerShare& share : shares) handles.push_back(share.handle);
  return handles;
}

std::vector<WorkerShares> GroupByOwner(
    rpc::Agent& agent, const std::vector<ParameterSource>& sources) {
  std::vector<WorkerShares> groups;
  int32_t handle = 0;
  for (const ParameterSource& source : sources) {
    auto same = [&](const WorkerShares& g) {
      return g.owner == source.owner();
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) {
      group = groups.insert(groups.end(), WorkerShares{});
      group->owner = source.owner();
    }
    group->shares.push_back({handle++, source.List(agent)});
  }
  for (WorkerShares& group : groups) {
    std::vector<Future<bool>> lists;
    for (const OptimizerShare& share : group.shares) {
      lists.push_back(share.list.Ready().Then([] { return true; }));
    }
    group.listed = WaitAll(lists);
  }
  return groups;
}

absl::StatusOr<std::vector<optim::StateDict>> SplitState(
    const optim::StateDict& state, const std::map<int32_t, size_t>& part_of,
    size_t parts) {
  std::vector<optim::StateDict> split(parts);
  for (const auto& [key, tensor] : state) {
    int32_t handle = -1;
    const bool numbered =
        absl::SimpleAtoi(key.substr(0, key.find('.')), &handle);
    auto found = part_of.find(handle);
    if (!numbered || found == part_of.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state '", key, "' fits no parameter"));
    }
    split[found->second].emplace(key, tensor);
  }
  return split;
}

}  // namespace baton::dist
