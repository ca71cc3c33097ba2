// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/local_optimizer.h"

#include <map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {

OptimizerHost::OptimizerHost(std::shared_ptr<UpdateLock> lock,
                             std::unique_ptr<optim::Optimizer> optimizer,
                             std::vector<std::string> parameter_names)
    : lock_(std::move(lock)),
      optimizer_(std::move(optimizer)),
      names_(std::move(parameter_names)) {}

absl::StatusOr<OptimizerHost::Parameters> OptimizerHost::Gather(
    const std::vector<OptimizerShare>& shares) {
  Parameters all;
  std::unordered_set<const void*> seen;
  for (const OptimizerShare& share : shares) {
    ASSIGN_OR_RETURN(auto list, share.list.LocalValue());
    size_t index = 0;
    for (const Variable& parameter : list->parameters) {
      const std::string name = absl::StrCat(share.handle, ".", index++);
      if (!seen.insert(parameter.id()).second) continue;
      all.values.push_back(parameter);
      all.names.push_back(name);
    }
  }
  return all;
}

absl::Status OptimizerHost::Step(const ContextState& context, double lr) {
  MutexLock lock(lock_->mutex);
  return CatchErrors([&] {
    optimizer_->set_lr(lr);
    optimizer_->Step([&](const Variable& parameter) {
      return context.GradientOf(parameter);
    });
  });
}

// The optimizer calls its parameters 0, 1, ...; across workers they are named
// by handle, so that a state can be restored to another placement.
optim::StateDict OptimizerHost::State() const {
  MutexLock lock(lock_->mutex);
  optim::StateDict named;
  for (auto& [key, tensor] : optimizer_->ExportState()) {
    size_t dot = key.find('.');
    size_t index = std::stoul(key.substr(0, dot));
    named[names_.at(index) + key.substr(dot)] = tensor;
  }
  return named;
}

absl::Status OptimizerHost::LoadState(const optim::StateDict& state) {
  std::map<std::string, size_t> index_of;
  for (size_t i = 0; i < names_.size(); ++i) index_of[names_[i]] = i;
  optim::StateDict local;
  for (const auto& [key, tensor] : state) {
    auto found = index_of.find(key.substr(0, key.rfind('.')));
    if (found == index_of.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state '", key, "' fits no parameter"));
    }
    local[absl::StrCat(found->second, key.substr(key.rfind('.')))] = tensor;
  }
  MutexLock lock(lock_->mutex);
  return optimizer_->ImportState(local);
}

}  // namespace baton::dist
