// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/shares.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace baton::dist {
namespace {

WorkerShares& SharesOf(const rpc::WorkerInfo& owner,
                       std::vector<WorkerShares>& workers) {
  const auto found =
      std::find_if(workers.begin(), workers.end(),
                   [&](const WorkerShares& w) { return w.owner == owner; });
  if (found != workers.end()) return *found;
  workers.emplace_back().owner = owner;
  return workers.back();
}

}  // namespace

std::vector<WorkerShares> GroupByOwner(
    rpc::Agent& agent,
    const std::vector<std::vector<ParameterSource>>& sources_of_groups) {
  std::vector<WorkerShares> workers;
  int number = 0;
  for (size_t group = 0; group < sources_of_groups.size(); ++group) {
    for (const ParameterSource& source : sources_of_groups[group]) {
      const std::string name = source.name().value_or(absl::StrCat(number++));
      const RRef<ParameterList> list = source.List(agent);
      WorkerShares& worker = SharesOf(source.owner(), workers);
      worker.shares.push_back(
          {static_cast<int32_t>(group), name.empty() ? "" : name + ".", list});
      worker.lists.push_back(source.Made(list));
    }
  }
  return workers;
}

absl::StatusOr<optim::StateDict> MergeStates(
    const std::vector<optim::StateDict>& states) {
  optim::StateDict all;
  for (const optim::StateDict& state : states) {
    for (const auto& [key, tensor] : state) {
      if (!all.emplace(key, tensor).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameters of two workers have the state '", key,
                         "': give their sources names"));
      }
    }
  }
  return all;
}

absl::StatusOr<std::vector<optim::StateDict>> SplitState(
    const optim::StateDict& state,
    const std::vector<std::vector<std::string>>& parameters) {
  std::map<std::string, size_t> part_of;
  for (size_t part = 0; part < parameters.size(); ++part)
    for (const std::string& name : parameters[part]) part_of[name] = part;
  std::vector<optim::StateDict> split(parameters.size());
  for (const auto& [key, tensor] : state) {
    const size_t dot = key.rfind('.');
    const auto found =
        part_of.find(dot == std::string::npos ? "" : key.substr(0, dot));
    if (found == part_of.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state '", key, "' fits no parameter"));
    }
    split[found->second].emplace(key, tensor);
  }
  return split;
}

}  // namespace baton::dist
