// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/optimizer.h"

#include <unordered_set>
#include <utility>

#include "core/graph.h"
#include "core/status.h"

namespace baton::optim {
namespace {

constexpr char kOp[] = "optimizer";
constexpr char kSteps[] = "step";
constexpr char kMaster[] = "master";

std::string Key(size_t parameter, const std::string& name) {
  return absl::StrCat(parameter, ".", name);
}

bool NeedsMaster(const Tensor& parameter) {
  return parameter.dtype() == DType::kBF16 || parameter.dtype() == DType::kF16;
}

// As the parameter lies, in the type that it is stepped in.
Tensor EmptyState(const Tensor& parameter) {
  return Tensor::Empty(
      parameter.shape(),
      {.dtype = NeedsMaster(parameter) ? DType::kF32 : parameter.dtype(),
       .device = parameter.device(),
       .format = parameter.SuggestFormat()});
}

Tensor Steps(int64_t steps, Device device) {
  return Tensor::Full(Shape(), static_cast<double>(steps),
                      {.dtype = DType::kI64, .device = device});
}

// What is written within a recording is written again by every replay.
void RequireNoRecording(const char* what) {
  if (!Graph::IsRecording()) return;
  Fail(kOp, absl::StrCat(what, " within a recording: step before it"),
       absl::StatusCode::kFailedPrecondition);
}

}  // namespace

Optimizer::Optimizer(std::vector<Variable> parameters,
                     std::vector<std::string> tensor_names, double lr)
    : parameters_(std::move(parameters)),
      tensor_names_(std::move(tensor_names)),
      lr_(lr),
      states_(parameters_.size()) {
  std::unordered_set<const void*> seen;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Require(parameters_[i].defined(), kOp, "parameter ", i, " is undefined");
    Require(seen.insert(parameters_[i].id()).second, kOp, "parameter ", i,
            " is listed twice");
  }
}

void Optimizer::Step() {
  Step([](const Variable& parameter) { return parameter.grad(); });
}

void Optimizer::set_lr(double lr) {
  if (lr == lr_) return;
  if (!rates_.empty()) RequireNoRecording("a new learning rate");
  lr_ = lr;
  for (const auto& [gpu, rate] : rates_) rate.Fill(lr);
}

Tensor Optimizer::RateOn(Device device) {
  if (device.is_cpu()) return Tensor();
  Tensor& rate = rates_[device.index()];
  if (!rate.defined()) {
    RequireNoRecording("the first step on a GPU");
    rate = Tensor::Full(Shape(), lr_, {.dtype = DType::kF64, .device = device});
  }
  return rate;
}

void Optimizer::BeginState(const Tensor& parameter, State& state) const {
  RequireNoRecording("a parameter's first step");
  state.steps = Steps(0, parameter.device());
  for (size_t t = 0; t < tensor_names_.size(); ++t) {
    state.tensors.push_back(EmptyState(parameter));
    state.tensors.back().Fill(0);
  }
  if (NeedsMaster(parameter)) {
    state.master = EmptyState(parameter);
    state.master.CopyFrom(parameter);
  }
}

// What was made for the parameter as it was before it was moved or cast.
void Optimizer::FollowParameter(const Tensor& parameter, State& state) {
  const bool needs_master = NeedsMaster(parameter);
  const DType dtype = needs_master ? DType::kF32 : parameter.dtype();
  const auto follows = [&](const Tensor& x) {
    return x.device() == parameter.device() && x.dtype() == dtype &&
           x.SuggestFormat() == parameter.SuggestFormat();
  };
  const auto follow = [&](Tensor& x) {
    if (follows(x)) return;
    RequireNoRecording("the first step of a parameter that was moved");
    const Tensor former = x;
    x = EmptyState(parameter);
    x.CopyFrom(former);
  };
  state.steps = state.steps.To(parameter.device());
  for (Tensor& tensor : state.tensors) follow(tensor);
  if (needs_master && !state.master.defined()) state.master = parameter;
  if (!needs_master) state.master = Tensor();
  if (needs_master) follow(state.master);
}

// In place: a recorded step has the tensors' addresses.
void Optimizer::Overwrite(const State& to, const State& from) {
  to.steps.CopyFrom(from.steps);
  for (size_t t = 0; t < to.tensors.size(); ++t)
    to.tensors[t].CopyFrom(from.tensors[t]);
  if (to.master.defined()) to.master.CopyFrom(from.master);
}

Optimizer::Update Optimizer::UpdateOf(const Tensor& parameter,
                                      const Tensor& grad, State& state) {
  const bool first = !state.steps.defined();
  first ? BeginState(parameter, state) : FollowParameter(parameter, state);
  const bool has_master = state.master.defined();
  return {.value = has_master ? state.master : parameter,
          .grad = grad,
          .state = state.tensors,
          .first_step = first,
          .lowered = has_master ? parameter : Tensor(),
          .rate = RateOn(parameter.device()),
          .count = state.steps,
          .skip = Tensor()};
}

void Optimizer::Step(const GradientOf& gradient_of, const SkipOn& skip_on) {
  std::vector<State> states = states_;  // tensors are handles: this is cheap
  std::vector<Update> updates;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor grad = gradient_of(parameters_[i]);
    if (!grad.defined()) continue;
    updates.push_back(UpdateOf(parameters_[i].tensor(), grad, states[i]));
    if (skip_on) updates.back().skip = skip_on(grad.device());
  }
  if (updates.empty()) return;
  Apply(updates);  // throws before it writes
  states_ = std::move(states);
}

void Optimizer::ZeroGrad() {
  for (const Variable& parameter : parameters_) Variable(parameter).ZeroGrad();
}

std::vector<std::string> Optimizer::NamesOf(const Tensor& parameter) const {
  std::vector<std::string> names = tensor_names_;
  if (NeedsMaster(parameter)) names.push_back(kMaster);
  return names;
}

StateDict Optimizer::ExportState() const {
  StateDict result;
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (!state.steps.defined()) continue;
    result[Key(i, kSteps)] = state.steps.Clone().To(Device::Cpu());
    for (size_t t = 0; t < tensor_names_.size(); ++t)
      result[Key(i, tensor_names_[t])] = state.tensors[t].Clone();
    if (state.master.defined()) result[Key(i, kMaster)] = state.master.Clone();
  }
  return result;
}

// Counts the entries it used; leaves a parameter that has none alone.
absl::Status Optimizer::ParseParameter(const StateDict& from, size_t i,
                                       State& state, size_t& used) const {
  const auto steps = from.find(Key(i, kSteps));
  if (steps == from.end()) return absl::OkStatus();
  if (steps->second.numel() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer state ", steps->first, " is not a number"));
  }
  const Tensor& parameter = parameters_[i].tensor();
  ++used;
  for (const std::string& name : NamesOf(parameter)) {
    const auto entry = from.find(Key(i, name));
    if (entry == from.end() || entry->second.shape() != parameter.shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer state ", Key(i, name), ": expected ",
          parameter.shape().ToString(), ", got ",
          entry == from.end() ? "none" : entry->second.ToString()));
    }
    const Tensor tensor = EmptyState(parameter);
    tensor.CopyFrom(entry->second);
    if (name == kMaster) {
      state.master = tensor;
    } else {
      state.tensors.push_back(tensor);
    }
    ++used;
  }
  state.steps =
      Steps(static_cast<int64_t>(steps->second.Item()), parameter.device());
  return absl::OkStatus();
}

absl::Status Optimizer::ParseState(const StateDict& from,
                                   std::vector<State>& states) const {
  size_t used = 0;
  for (size_t i = 0; i < parameters_.size(); ++i)
    RETURN_IF_ERROR(ParseParameter(from, i, states[i], used));
  if (used == from.size()) return absl::OkStatus();
  for (const auto& [key, tensor] : from) {
    const size_t dot = key.find('.');
    const std::string name =
        dot == std::string::npos ? "" : key.substr(dot + 1);
    bool known = name == kSteps || name == kMaster;
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
  if (!status.ok()) return status;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].steps.defined() && states_[i].steps.defined()) {
      FollowParameter(parameters_[i].tensor(), states_[i]);
      Overwrite(states_[i], states[i]);
    } else {
      states_[i] = states[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace baton::optim
