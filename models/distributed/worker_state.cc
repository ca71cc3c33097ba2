// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/worker_state.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/engine.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// Returns PART, a dot, and the prefix of a module's tensor names.
std::string NamePrefix(const char* part, const std::string& prefix) {
  return absl::StrCat(part, ".", prefix);
}

void AddPrefixed(const std::string& prefix, const NamedTensors& from,
                 NamedTensors& to) {
  for (const auto& [name, tensor] : from) to[prefix + name] = tensor;
}

// Returns those of `wanted` that `from` has under the prefix; the module
// reports the missing ones.
nn::StateMap Picked(const NamedTensors& from, const std::string& prefix,
                    const nn::StateMap& wanted) {
  nn::StateMap picked;
  for (const auto& [name, tensor] : wanted) {
    const auto found = from.find(prefix + name);
    if (found != from.end()) picked[name] = found->second;
  }
  return picked;
}

// Whether the name is "PART.parameter.slot" for one of the parameters.
bool IsStateOf(const std::string& part, const std::set<std::string>& parameters,
               const std::string& name) {
  const size_t begin = part.size() + 1, dot = name.rfind('.');
  return absl::StartsWith(name, absl::StrCat(part, ".")) &&
         dot != std::string::npos && dot > begin &&
         parameters.count(name.substr(begin, dot - begin)) > 0;
}

std::set<std::string> ParametersOf(const OptimizerHost& host) {
  return {host.names().begin(), host.names().end()};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const WorkerState>> WorkerState::Make(
    const rpc::CallContext& call, const std::vector<ShardModule>& modules,
    const std::vector<ShardOptimizer>& optimizers) {
  const auto engine = call.agent().service<Engine>();
  if (engine == nullptr) {
    return absl::FailedPreconditionError(
        "this worker has no distributed autograd: call dist::Attach");
  }
  auto state = std::make_shared<WorkerState>();
  for (const ShardModule& module : modules) {
    ASSIGN_OR_RETURN(const auto held, module.module.LocalValue());
    state->modules_.push_back({module.prefix, held->module});
    state->locks_.push_back(held->lock);
  }
  for (const ShardOptimizer& optimizer : optimizers) {
    ASSIGN_OR_RETURN(auto host, optimizer.host.LocalValue());
    state->optimizers_.push_back({optimizer.part, std::move(host)});
  }
  state->locks_.push_back(engine->parameters());
  return state;
}

NamedTensors WorkerState::Tensors() const {
  NamedTensors tensors;
  for (const auto& [prefix, module] : modules_) {
    AddPrefixed(NamePrefix(kModelPart, prefix), module->StateDict(), tensors);
    AddPrefixed(NamePrefix(kGeneratorPart, prefix), module->GeneratorState(),
                tensors);
  }
  for (const auto& [part, host] : optimizers_)
    tensors.merge(AsPart(part, host->StateHeld()));
  return tensors;
}

std::vector<std::string> WorkerState::Taken(
    const std::vector<std::string>& names) const {
  const std::set<std::string> there(names.begin(), names.end());
  std::vector<std::string> taken;
  const auto want = [&](const std::string& prefix, const nn::StateMap& state) {
    for (const auto& [name, tensor] : state)
      if (there.count(prefix + name) > 0) taken.push_back(prefix + name);
  };
  for (const auto& [prefix, module] : modules_) {
    want(NamePrefix(kModelPart, prefix), module->StateDict());
    want(NamePrefix(kGeneratorPart, prefix), module->GeneratorState());
  }
  for (const auto& [part, host] : optimizers_) {
    const std::set<std::string> parameters = ParametersOf(*host);
    for (const std::string& name : there)
      if (IsStateOf(part, parameters, name)) taken.push_back(name);
  }
  return taken;
}

absl::Status WorkerState::Load(const NamedTensors& tensors) const {
  RETURN_IF_ERROR(LoadWeights(tensors).status());
  for (const auto& [prefix, module] : modules_) {
    RETURN_IF_ERROR(module->LoadGeneratorState(
        Picked(tensors, NamePrefix(kGeneratorPart, prefix),
               module->GeneratorState())));
  }
  for (const auto& [part, host] : optimizers_) {
    const std::set<std::string> parameters = ParametersOf(*host);
    optim::StateDict state;
    for (const auto& [name, tensor] : tensors) {
      if (IsStateOf(part, parameters, name))
        state[name.substr(part.size() + 1)] = tensor;
    }
    RETURN_IF_ERROR(host->LoadStateHeld(state));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> WorkerState::LoadWeights(
    const NamedTensors& weights) const {
  std::vector<std::string> names;
  for (const auto& [prefix, module] : modules_) {
    const std::string in_file = NamePrefix(kModelPart, prefix);
    const nn::StateMap state = Picked(weights, in_file, module->StateDict());
    RETURN_IF_ERROR(module->LoadStateDict(state));
    for (const auto& [name, tensor] : state) names.push_back(in_file + name);
  }
  return names;
}

}  // namespace baton::dist
