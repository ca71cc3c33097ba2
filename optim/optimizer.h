// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "autograd/variable.h"
#include "core/ops/optimizer.h"
#include "optim/rates.h"
#include "optim/schedule.h"

namespace baton::optim {

// Returns the gradient to step a parameter by; undefined: do not step it.
using GradientOf = std::function<Gradient(const Variable& parameter)>;

// See Step.
using SkipOn = std::function<Tensor(Device)>;

// "parameter.name" -> tensor for each parameter, by its name, and "steps", "lr"
// and "initial_lr" (for each group) of the whole optimizer: the state that a
// checkpoint keeps.
using StateDict = std::map<std::string, Tensor>;

// Limits on the gradients that a step uses; the parameters' own gradients stay
// unchanged.
struct Clip {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double norm = kNone;   // of all gradients together
                         // (torch.nn.utils.clip_grad_norm_)
  double value = kNone;  // of each element (clip_grad_value_)

  // Throws Error for a negative limit and for both limits at once.
  void Check() const;
  // Returns the factor by which gradients of this norm are clipped.
  double FactorOf(double all) const {
    return std::min(norm / (all + 1e-6), 1.0);
  }
};

// Updates leaves in place by their gradients. Leaves are in groups, each with
// its own options. A parameter without a gradient keeps its value and its
// state, including the step count. State is made at a parameter's first step,
// on its device, and follows a parameter that is moved or cast later. Gradients
// remain, and backward adds to them, until ZeroGrad: so gradients of several
// micro-batches accumulate.
//
// The state of a bf16 or f16 parameter has a master copy in f32: the master is
// stepped, and the parameter is the rounded master. If other code writes the
// parameter, the next step, replayed or not, begins from the written value.
//
// On a GPU the rates and the step counts are in device memory, so that a
// recorded Step (core/graph.h) follows set_lr and the schedule and counts at
// every replay. Before recording, take one Step with all parameters that have a
// gradient in the recorded step.
//
//   optim::Sgd sgd(model.Parameters(), {.lr = 0.1, .momentum = 0.9});
//   sgd.ZeroGrad();
//   loss.Backward();
//   sgd.Step();
//
// Thread-compatible.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Steps by each parameter's grad(). Throws Error, and changes nothing, if a
  // gradient does not fit.
  void Step();
  // Steps by gradients from elsewhere, such as a context or a map. If `skip_on`
  // returns, for a device, an f32 [] there that is not 0 when the step runs,
  // then the device's parameters and their state stay unchanged (the schedule
  // advances). `norm` is the norm of these gradients and others elsewhere, for
  // the clip.
  void Step(const GradientOf& gradient_of, const SkipOn& skip_on = nullptr,
            std::optional<double> norm = std::nullopt);
  void ZeroGrad();

  // Does Backward and Step in one, to save memory: a parameter is stepped as
  // soon as its gradient is complete, in groups of `bucket_bytes`, whose
  // gradients are then freed. The values equal those of Backward and Step, bit
  // for bit; afterwards no parameter has a gradient. Gradients of other leaves
  // are added to theirs. Throws Error, and changes nothing, if a step would
  // need all gradients first: with a limit on the norm, and if a parameter
  // already has a gradient, which is part of an accumulation. GradScaler's
  // steps after it throw, too. If the backward itself throws, some parameters
  // may have been stepped.
  void BackwardStep(const std::vector<Variable>& outputs,
                    const std::vector<Tensor>& grad_outputs = {},
                    size_t bucket_bytes = size_t{1} << 22);

  // Returns the rate of the next step.
  double lr(size_t group = 0) const { return rates_->now().at(group); }
  // Sets the rate of all groups, or one; with a schedule, for one step only.
  // Throws Error within a recording, because replays read the rate from memory.
  void set_lr(double lr);
  void set_lr(size_t group, double lr) { rates_->Set(group, lr); }
  // After every step, replayed or not, the schedule sets the rates of the next
  // one. Counts steps since the optimizer was made or its state imported.
  void set_schedule(Schedule schedule) { rates_->Follow(std::move(schedule)); }

  // Applies to every later step; a recorded one keeps the clip of its
  // recording. Throws Error as Clip::Check does.
  void set_clip(const Clip& clip);
  // Returns the norm of all gradients of the last step that had a norm limit,
  // before clipping: f64 [], on the device of the first. Undefined before such
  // a step.
  const Tensor& grad_norm() const { return grad_norm_; }
  // Returns the square of that norm for these gradients.
  static Tensor SquareNorm(const std::vector<Tensor>& gradients);

  size_t groups() const { return rates_->groups(); }
  const std::vector<Variable>& parameters() const { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }

  // ExportState returns copies. SharedState returns the optimizer's own
  // tensors, which the next step changes, without waiting for a GPU: for
  // callers that copy them at once.
  StateDict ExportState() const;
  StateDict SharedState() const;
  // Copies the state in. InvalidArgument names an entry that is unknown,
  // missing or of the wrong shape; then nothing changes. Entries of the whole
  // optimizer may be missing; they then stay unchanged.
  absl::Status ImportState(const StateDict& state);

 protected:
  // Parameters without names are called 0, 1, ... over all groups.
  struct Group {
    std::vector<Variable> parameters;
    std::vector<std::string> names;
    std::vector<ops::StateSlot> slots;
    double lr;
  };

  using Targets = std::vector<std::vector<ops::StepTarget>>;  // by group

  // Throws for a parameter that is undefined or listed twice, and for a
  // duplicate name.
  explicit Optimizer(std::vector<Group> groups);

  // Steps the targets of each group; throws Error before it writes. Elements of
  // gradients are clipped to `limit` before they are scaled.
  virtual void Apply(const Targets& targets, double limit) = 0;

 private:
  struct State {
    Tensor steps;  // i64 [], number of steps so far; undefined at first
    std::vector<Tensor> tensors;  // by slot
    Tensor master;                // f32; for a bf16 or f16 parameter
  };

  void AddGroup(size_t group, std::vector<Variable> parameters,
                std::vector<std::string> names);
  const std::vector<ops::StateSlot>& SlotsOf(size_t parameter) const {
    return slots_[group_of_[parameter]];
  }
  struct Due {
    size_t parameter;
    Gradient gradient;
  };
  void StepDue(const std::vector<Due>& due, const SkipOn& skip_on,
               std::optional<double> norm);
  std::unordered_map<const void*, size_t> WithoutGradients() const;
  static void Overwrite(const State& to, const State& from);
  void BeginState(size_t i, State& state) const;
  static void FollowParameter(const Tensor& parameter, State& state);
  ops::StepTarget TargetOf(size_t i, const Gradient& grad, State& state);
  void LimitNorm(Targets& targets, std::optional<double> norm);
  void AfterStep();
  using Keys = std::set<std::string>;
  absl::Status ParseState(const StateDict& from,
                          std::vector<State>& states) const;
  absl::Status ParseParameter(const StateDict& from, size_t i, State& state,
                              Keys& used) const;

  std::vector<Variable> parameters_;
  std::vector<std::string> names_;
  std::vector<size_t> group_of_;
  std::vector<std::vector<ops::StateSlot>> slots_;  // of each group
  std::vector<State> states_;                       // of each parameter
  Clip clip_;
  Tensor grad_norm_;
  const std::shared_ptr<Rates> rates_;
};

}  // namespace baton::optim
