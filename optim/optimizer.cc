// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/optimizer.h"

#include <unordered_set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/engine.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"

namespace baton::optim {
namespace {

constexpr char kOp[] = "optimizer";
// Keys of a parameter's state.
constexpr char kStep[] = "step";
constexpr char kMaster[] = "master";

bool NeedsMaster(const Tensor& parameter) {
  return parameter.dtype() == DType::kBF16 || parameter.dtype() == DType::kF16;
}

// Returns an empty tensor like the parameter, in the dtype that it is stepped
// in.
Tensor EmptyState(const Tensor& parameter) {
  return Tensor::Empty(
      parameter.shape(),
      {.dtype = NeedsMaster(parameter) ? DType::kF32 : parameter.dtype(),
       .device = parameter.device(),
       .format = parameter.SuggestFormat()});
}

Tensor Count(int64_t steps, Device device) {
  return Tensor::Full(Shape(), static_cast<double>(steps),
                      {.dtype = DType::kI64, .device = device});
}

absl::Status Misfit(const std::string& key, const Shape& expected,
                    const Tensor& got) {
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer state ", key, ": expected ", expected.ToString(),
                   ", got ", got.defined() ? got.ToString() : "none"));
}

Tensor Find(const StateDict& from, const std::string& key) {
  const auto found = from.find(key);
  return found == from.end() ? Tensor() : found->second;
}

}  // namespace

Optimizer::Optimizer(std::vector<Group> groups)
    : rates_(std::make_shared<Rates>([&] {
        std::vector<double> rates;
        for (const Group& group : groups) rates.push_back(group.lr);
        return rates;
      }())) {
  for (Group& group : groups) {
    AddGroup(slots_.size(), std::move(group.parameters),
             std::move(group.names));
    slots_.push_back(std::move(group.slots));
  }
  states_.resize(parameters_.size());
  std::unordered_set<const void*> seen;
  Keys names;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Require(parameters_[i].defined(), kOp, "parameter ", names_[i],
            " is undefined");
    Require(seen.insert(parameters_[i].id()).second, kOp, "parameter ",
            names_[i], " is listed twice");
    Require(names.insert(names_[i]).second, kOp, "two parameters are called ",
            names_[i]);
  }
}

void Optimizer::AddGroup(size_t group, std::vector<Variable> parameters,
                         std::vector<std::string> names) {
  Require(names.empty() || names.size() == parameters.size(), kOp, names.size(),
          " names for ", parameters.size(), " parameters");
  for (size_t i = 0; i < parameters.size(); ++i) {
    names_.push_back(names.empty() ? absl::StrCat(parameters_.size())
                                   : names[i]);
    parameters_.push_back(parameters[i]);
    group_of_.push_back(group);
  }
}

void Optimizer::set_lr(double lr) {
  for (size_t group = 0; group < groups(); ++group) set_lr(group, lr);
}

void Optimizer::BeginState(size_t i, State& state) const {
  RequireNoRecording("a parameter's first step");
  const Tensor& parameter = parameters_[i].tensor();
  state.steps = Count(0, parameter.device());
  for (const ops::StateSlot& slot : SlotsOf(i)) {
    const bool used = slot.name != nullptr;
    state.tensors.push_back(used ? EmptyState(parameter) : Tensor());
    if (used) state.tensors.back().Fill(slot.initial);
  }
  if (NeedsMaster(parameter)) {
    state.master = EmptyState(parameter);
    state.master.CopyFrom(parameter);
  }
}

// Moves and casts the state if the parameter was moved or cast since.
void Optimizer::FollowParameter(const Tensor& parameter, State& state) {
  const bool needs_master = NeedsMaster(parameter);
  const DType dtype = needs_master ? DType::kF32 : parameter.dtype();
  const auto follows = [&](const Tensor& x) {
    return x.device() == parameter.device() && x.dtype() == dtype &&
           x.SuggestFormat() == parameter.SuggestFormat();
  };
  const auto follow = [&](Tensor& x) {
    if (!x.defined() || follows(x)) return;
    RequireNoRecording("the first step of a parameter that was moved");
    const Tensor former = x;
    x = EmptyState(parameter);
    x.CopyFrom(former);
  };
  state.steps = state.steps.To(parameter.device());
  for (Tensor& tensor : state.tensors) follow(tensor);
  if (needs_master && !state.master.defined()) state.master = parameter;
  if (!needs_master) state.master = Tensor();
  follow(state.master);
}

// Copies in place, because a recorded step uses the tensors' addresses.
void Optimizer::Overwrite(const State& to, const State& from) {
  to.steps.CopyFrom(from.steps);
  for (size_t t = 0; t < to.tensors.size(); ++t)
    if (to.tensors[t].defined()) to.tensors[t].CopyFrom(from.tensors[t]);
  if (to.master.defined()) to.master.CopyFrom(from.master);
}

ops::StepTarget Optimizer::TargetOf(size_t i, const Gradient& grad,
                                    State& state) {
  const Tensor& parameter = parameters_[i].tensor();
  if (state.steps.defined()) {
    FollowParameter(parameter, state);
  } else {
    BeginState(i, state);
  }
  const bool has_master = state.master.defined();
  return {.value = has_master ? state.master : parameter,
          .grad = grad.values(),
          .state = state.tensors,
          .rows = grad.index(),
          .lowered = has_master ? parameter : Tensor(),
          .rate = rates_->On(group_of_[i], parameter.device()),
          .count = state.steps};
}

void Optimizer::Step() {
  Step([](const Variable& parameter) { return parameter.gradient(); });
}

void Optimizer::Step(const GradientOf& gradient_of, const SkipOn& skip_on,
                     std::optional<double> norm) {
  std::vector<Due> due;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Gradient gradient = gradient_of(parameters_[i]);
    if (gradient.defined()) due.push_back({i, std::move(gradient)});
  }
  StepDue(due, skip_on, norm);
  AfterStep();
}

void Optimizer::StepDue(const std::vector<Due>& due, const SkipOn& skip_on,
                        std::optional<double> norm) {
  std::vector<State> states;  // tensors are handles: copies are cheap
  Targets targets(groups());
  for (const auto& [i, gradient] : due) {
    states.push_back(states_[i]);
    ops::StepTarget target = TargetOf(i, gradient, states.back());
    if (skip_on) target.skip = skip_on(gradient.device());
    targets[group_of_[i]].push_back(std::move(target));
  }
  if (clip_.norm != Clip::kNone) LimitNorm(targets, norm);
  Apply(targets, clip_.value);  // throws before it writes
  for (size_t k = 0; k < due.size(); ++k)
    states_[due[k].parameter] = std::move(states[k]);
}

// Returns the index of each parameter by id. Throws Error if one has a
// gradient.
std::unordered_map<const void*, size_t> Optimizer::WithoutGradients() const {
  std::unordered_map<const void*, size_t> numbers;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].gradient().defined()) {
      Fail(kOp,
           absl::StrCat("parameter ", names_[i],
                        " has a gradient from before: a step within backward "
                        "is by that of one backward alone"),
           absl::StatusCode::kFailedPrecondition);
    }
    numbers.emplace(parameters_[i].id(), i);
  }
  return numbers;
}

void Optimizer::BackwardStep(const std::vector<Variable>& outputs,
                             const std::vector<Tensor>& grad_outputs,
                             size_t bucket_bytes) {
  if (clip_.norm != Clip::kNone) {
    Fail(kOp,
         "a step within backward does not know the norm of all gradients, by "
         "which they are clipped: take Backward and Step",
         absl::StatusCode::kFailedPrecondition);
  }
  const auto numbers = WithoutGradients();
  std::vector<Due> due;
  size_t bytes = 0;
  const auto step = [&] {
    StepDue(due, nullptr, std::nullopt);
    due.clear();
    bytes = 0;
  };
  autograd::Backward(outputs, grad_outputs, /*retain_graph=*/false,
                     [&](const Variable& leaf, const Gradient& gradient) {
                       const auto found = numbers.find(leaf.id());
                       if (found == numbers.end())
                         return Variable(leaf).AccumulateGrad(gradient);
                       due.push_back({found->second, gradient});
                       bytes += gradient.nbytes();
                       if (bytes >= bucket_bytes) step();
                     });
  step();
  AfterStep();
}

void Clip::Check() const {
  Require(norm >= 0 && value >= 0, kOp, "a limit of gradients is negative");
  Require(norm == kNone || value == kNone, kOp,
          "gradients are clipped by norm or by value, not by both");
}

void Optimizer::set_clip(const Clip& clip) {
  clip.Check();
  clip_ = clip;
}

Tensor Optimizer::SquareNorm(const std::vector<Tensor>& gradients) {
  std::map<std::string, std::vector<Tensor>> by_device;
  for (const Tensor& gradient : gradients)
    by_device[gradient.device().ToString()].push_back(gradient);
  Tensor sum;
  for (const auto& [device, part] : by_device) {
    const Tensor more = ops::SquareSum(part);
    sum = sum.defined() ? ops::Add(sum, more.To(sum.device())) : more;
  }
  return sum.defined() ? sum : Tensor::Scalar(0, DType::kF64);
}

// Clips like PyTorch's clip_grad_norm_; if the norm is within the limit, the
// factor is 1.
void Optimizer::LimitNorm(Targets& targets, std::optional<double> norm) {
  std::vector<Tensor> gradients;
  for (const auto& group : targets)
    for (const ops::StepTarget& target : group)
      gradients.push_back(target.grad);
  if (gradients.empty()) return;
  const Device first = gradients.front().device();
  const auto number = [&](double value) {
    return Tensor::Full(Shape(), value,
                        {.dtype = DType::kF64, .device = first});
  };
  grad_norm_ = norm.has_value() ? number(*norm)
                                : ops::Sqrt(SquareNorm(gradients).To(first));
  const Tensor scale = ops::Minimum(
      ops::Div(number(clip_.norm), ops::AddScalar(grad_norm_, 1e-6)),
      number(1));
  std::map<std::string, Tensor> on_device;
  for (auto& group : targets) {
    for (ops::StepTarget& target : group) {
      Tensor& there = on_device[target.grad.device().ToString()];
      if (!there.defined()) there = scale.To(target.grad.device());
      target.scale = there;
    }
  }
}

void Optimizer::AfterStep() {
  if (!Graph::IsRecording()) return rates_->Advance();
  Graph::AfterReplay([rates = std::weak_ptr<Rates>(rates_)] {
    if (const auto of_optimizer = rates.lock()) of_optimizer->Advance();
  });
}

void Optimizer::ZeroGrad() {
  for (const Variable& parameter : parameters_) Variable(parameter).ZeroGrad();
}

StateDict Optimizer::ExportState() const {
  StateDict result = SharedState();
  for (auto& [key, tensor] : result) {
    const bool counts = absl::EndsWith(key, absl::StrCat(".", kStep));
    tensor = (counts ? tensor.To(Device::Cpu()) : tensor).Clone();
  }
  return result;
}

StateDict Optimizer::SharedState() const {
  StateDict result = rates_->Export();
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (!state.steps.defined()) continue;
    const std::string prefix = names_[i] + ".";
    result[prefix + kStep] = state.steps;
    for (size_t t = 0; t < state.tensors.size(); ++t)
      if (state.tensors[t].defined())
        result[prefix + SlotsOf(i)[t].name] = state.tensors[t];
    if (state.master.defined()) result[prefix + kMaster] = state.master;
  }
  return result;
}

// Adds the keys that it read to `used`. If there are none for the parameter,
// leaves its state as it is.
absl::Status Optimizer::ParseParameter(const StateDict& from, size_t i,
                                       State& state, Keys& used) const {
  const std::string prefix = names_[i] + ".";
  const Tensor steps = Find(from, prefix + kStep);
  if (!steps.defined()) return absl::OkStatus();
  if (steps.numel() != 1) return Misfit(prefix + kStep, Shape(), steps);
  used.insert(prefix + kStep);
  const Tensor& parameter = parameters_[i].tensor();
  const auto read = [&](const char* name, Tensor& into) {
    const Tensor found = Find(from, prefix + name);
    if (!found.defined() || found.shape() != parameter.shape())
      return Misfit(prefix + name, parameter.shape(), found);
    into = EmptyState(parameter);
    into.CopyFrom(found);
    used.insert(prefix + name);
    return absl::OkStatus();
  };
  for (const ops::StateSlot& slot : SlotsOf(i)) {
    Tensor& tensor = state.tensors.emplace_back();
    if (slot.name != nullptr) RETURN_IF_ERROR(read(slot.name, tensor));
  }
  if (NeedsMaster(parameter)) RETURN_IF_ERROR(read(kMaster, state.master));
  state.steps = Count(static_cast<int64_t>(steps.Item()), parameter.device());
  return absl::OkStatus();
}

absl::Status Optimizer::ParseState(const StateDict& from,
                                   std::vector<State>& states) const {
  Keys used;
  for (size_t i = 0; i < parameters_.size(); ++i)
    RETURN_IF_ERROR(ParseParameter(from, i, states[i], used));
  for (const auto& [key, tensor] : from) {
    if (used.count(key) == 0 && !Rates::IsKey(key)) {
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state ", key, " is unknown here"));
    }
  }
  return absl::OkStatus();
}

absl::Status Optimizer::ImportState(const StateDict& state) {
  std::vector<State> states(parameters_.size());
  RETURN_IF_ERROR(CatchErrors([&] { return ParseState(state, states); }));
  RETURN_IF_ERROR(CatchErrors([&] { return rates_->Import(state); }));
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
