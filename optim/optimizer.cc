// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/optimizer.h"

#include <unordered_set>
#include <utility>

#include "core/status.h"

namespace baton::optim {
namespace {

constexpr char kSteps[] = "step";

std::string Key(size_t parameter, const std::string& name) {
  return absl::StrCat(parameter, ".", name);
}

}  // namespace

Optimizer::Optimizer(std::vector<Variable> parameters,
                     std::vector<std::string> tensor_names)
    : parameters_(std::move(parameters)),
      tensor_names_(std::move(tensor_names)),
      states_(parameters_.size()) {
  std::unordered_set<const void*> seen;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Require(parameters_[i].defined(), "optimizer", "parameter ", i,
            " is undefined");
    Require(seen.insert(parameters_[i].id()).second, "optimizer", "parameter ",
            i, " is listed twice");
  }
}

void Optimizer::Step() {
  Step([](const Variable& parameter) { return parameter.grad(); });
}

void Optimizer::Step(const GradientOf& gradient_of) {
  std::vector<State> states = states_;  // tensors are handles: this is cheap
  std::vector<Update> updates;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor grad = gradient_of(parameters_[i]);
    if (!grad.defined()) continue;
    const Tensor& value = parameters_[i].tensor();
    State& state = states[i];
    if (state.tensors.empty()) {
      for (size_t t = 0; t < tensor_names_.size(); ++t)
        state.tensors.push_back(Tensor::ZerosLike(value));
    }
    ++state.steps;
    updates.push_back({value, std::move(grad), &state});
  }
  if (updates.empty()) return;
  Apply(updates);  // throws before it writes
  states_ = std::move(states);
}

void Optimizer::ZeroGrad() {
  for (const Variable& parameter : parameters_) Variable(parameter).ZeroGrad();
}

StateDict Optimizer::ExportState() const {
  StateDict result;
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (state.steps == 0) continue;
    result[Key(i, kSteps)] =
        Tensor::From(std::vector<int64_t>{state.steps}, Shape());
    for (size_t t = 0; t < tensor_names_.size(); ++t)
      result[Key(i, tensor_names_[t])] = state.tensors[t].Clone();
  }
  return result;
}

absl::Status Optimizer::ParseState(const StateDict& from,
                                   std::vector<State>& states) const {
  size_t used = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto steps = from.find(Key(i, kSteps));
    if (steps == from.end()) continue;
    if (steps->second.numel() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state ", steps->first, " is not a number"));
    }
    states[i].steps = static_cast<int64_t>(steps->second.Item());
    ++used;
    for (const std::string& name : tensor_names_) {
      const auto entry = from.find(Key(i, name));
      const Tensor& value = parameters_[i].tensor();
      if (entry == from.end() || entry->second.shape() != value.shape()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "optimizer state ", Key(i, name), ": expected ",
            value.shape().ToString(), ", got ",
            entry == from.end() ? "none" : entry->second.ToString()));
      }
      states[i].tensors.push_back(Tensor::EmptyLike(value));
      states[i].tensors.back().CopyFrom(entry->second);
      ++used;
    }
  }
  if (used == from.size()) return absl::OkStatus();
  for (const auto& [key, tensor] : from) {
    const size_t dot = key.find('.');
    const std::string name =
        dot == std::string::npos ? "" : key.substr(dot + 1);
    bool known = name == kSteps;
    for (const std::string& tensor_name : tensor_names_)
      known = known || name == tensor_name;
    if (!known || from.count(key.substr(0, dot) + "." + kSteps) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state ", key, " is unknown here"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer state is of more than the ", parameters_.size(),
                   " parameters here"));
}

absl::Status Optimizer::ImportState(const StateDict& state) {
  std::vector<State> states(parameters_.size());
  const absl::Status status =
      CatchErrors([&] { return ParseState(state, states); });
  if (status.ok()) states_ = std::move(states);
  return status;
}

}  // namespace baton::optim
