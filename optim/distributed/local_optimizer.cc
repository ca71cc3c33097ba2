// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/local_optimizer.h"

#include <map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {

OptimizerHost::OptimizerHost(
    std::vector<std::shared_ptr<rpc::ObjectLock>> locks,
    std::unique_ptr<optim::Optimizer> optimizer,
    std::vector<std::string> parameter_names)
    : locks_(std::move(locks)),
      optimizer_(std::move(optimizer)),
      names_(std::move(parameter_names)) {}

absl::StatusOr<OptimizerHost::Parameters> OptimizerHost::Gather(
    const std::vector<OptimizerShare>& shares) {
  Parameters all;
  std::unordered_set<const void*> seen;
  for (const OptimizerShare& share : shares) {
    ASSIGN_OR_RETURN(auto list, share.list.LocalValue());
    all.locks.push_back(list->lock);
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

Future<void> OptimizerHost::Step(const rpc::CallContext& call,
                                 std::shared_ptr<ContextState> context,
                                 double lr) {
  return rpc::WithObjects(call, locks_, rpc::Access::kExclusive,
                          [this, context = std::move(context), lr] {
                            StepHeld(
                                [&](const Variable& parameter) {
                                  return context->GradientOf(parameter);
                                },
                                lr);
                          });
}

void OptimizerHost::StepHeld(const optim::GradientOf& gradient_of, double lr) {
  optimizer_->set_lr(lr);
  optimizer_->Step(gradient_of);
}

// The optimizer calls its parameters 0, 1, ...; across workers they are named
// by handle, so that a state can be restored to another placement.
Future<optim::StateDict> OptimizerHost::State(const rpc::CallContext& call) {
  return rpc::WithObjects(call, locks_, rpc::Access::kShared, [this] {
    optim::StateDict named;
    for (auto& [key, tensor] : optimizer_->ExportState()) {
      size_t dot = key.find('.');
      size_t index = std::stoul(key.substr(0, dot));
      named[names_.at(index) + key.substr(dot)] = tensor;
    }
    return named;
  });
}

Future<void> OptimizerHost::LoadState(const rpc::CallContext& call,
                                      const optim::StateDict& state) {
  std::map<std::string, size_t> index_of;
  for (size_t i = 0; i < names_.size(); ++i) index_of[names_[i]] = i;
  optim::StateDict local;
  for (const auto& [key, tensor] : state) {
    auto found = index_of.find(key.substr(0, key.rfind('.')));
    if (found == index_of.end()) {
      return ReadyFuture<void>(absl::InvalidArgumentError(
          absl::StrCat("optimizer state '", key, "' fits no parameter")));
    }
    local[absl::StrCat(found->second, key.substr(key.rfind('.')))] = tensor;
  }
  return rpc::WithObjects(call, locks_, rpc::Access::kExclusive,
                          [this, local = std::move(local)] {
                            return optimizer_->ImportState(local);
                          });
}

}  // namespace baton::dist
