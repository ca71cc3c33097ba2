// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

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

// The gradient to step a parameter by; undefined: leave the parameter alone.
using GradientOf = std::function<Gradient(const Variable& parameter)>;

// See Step.
using SkipOn = std::function<Tensor(Device)>;

// "parameter.name" -> tensor for each parameter, by its name, and "steps", "lr"
// and "initial_lr" (of each group) of the whole: what a checkpoint keeps.
using StateDict = std::map<std::string, Tensor>;

// Limits to the gradients that a step goes by; what parameters have as gradient
// stays as it is.
struct Clip {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double norm = kNone;   // of all together (torch.nn.utils.clip_grad_norm_)
  double value = kNone;  // of each element (clip_grad_value_)
};

// Updates leaves in place by their gradients. They are in groups, each with
// options of its own. A parameter without a gradient keeps its value and its
// state, step count included. State is made at a parameter's first step, on its
// device, and follows a parameter that is moved or cast later. Gradients stay,
// and backward adds to them, until ZeroGrad: so gradients of several
// micro-batches accumulate.
//
// A bf16 or f16 parameter has a master copy in f32 in its state: the master is
// stepped, and the parameter is the master rounded. Where something else wrote
// the parameter, the next step, replayed or not, begins from what was written.
//
// On a GPU the rates and the step counts are device memory, so that a recorded
// Step (core/graph.h) obeys set_lr and the schedule and counts at every replay.
// Take one Step before the recording, with all parameters that have a gradient
// in it.
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

  // By each parameter's grad(). Throws Error, and changes nothing, where a
  // gradient does not fit.
  void Step();
  // By gradients from elsewhere: a context's, or an explicit map. Where
  // `skip_on` gives, for a device, an f32 [] there that is not 0 when the step
  // runs, the device's parameters and their state stay as they are (the
  // schedule goes on). `norm`: of these gradients and others elsewhere, for
  // the clip.
  void Step(const GradientOf& gradient_of, const SkipOn& skip_on = nullptr,
            std::optional<double> norm = std::nullopt);
  void ZeroGrad();

  // Backward and Step in one, for less memory: a parameter is stepped as soon
  // as its gradient is complete, with those of `bucket_bytes` together, which
  // are then given back. The values are those of Backward and Step, bit for
  // bit; no parameter has a gradient afterwards. Gradients of other leaves are
  // added to theirs. Throws Error, and changes nothing, where what is to be
  // looked at before a step is not there yet: with a limit to the norm, and
  // where a parameter has a gradient from before, which is part of an
  // accumulation; so do GradScaler's steps after it. What the backward itself
  // throws may leave some parameters stepped.
  void BackwardStep(const std::vector<Variable>& outputs,
                    const std::vector<Tensor>& grad_outputs = {},
                    size_t bucket_bytes = size_t{1} << 22);

  // Of the step to come.
  double lr(size_t group = 0) const { return rates_->now().at(group); }
  // Of all groups, or one; for a step, where there is a schedule. Throw Error
  // within a recording: the rate is what replays may change.
  void set_lr(double lr);
  void set_lr(size_t group, double lr) { rates_->Set(group, lr); }
  // Every step, replayed or not, is followed by the rates of the next one.
  // Counts the steps since the optimizer was made or its state imported.
  void set_schedule(Schedule schedule) { rates_->Follow(std::move(schedule)); }

  // Of every step from now on, a recorded one as of its recording. Throws Error
  // on a limit below 0, and on both.
  void set_clip(const Clip& clip);
  // Of all gradients of the last step with a limit to it, before that: f64 [],
  // on the device of the first. Undefined before.
  const Tensor& grad_norm() const { return grad_norm_; }
  // Its square, for the same gradients.
  static Tensor SquareNorm(const std::vector<Tensor>& gradients);

  size_t groups() const { return rates_->groups(); }
  const std::vector<Variable>& parameters() const { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }

  // The tensors are copies, but for SharedState's, which the next step changes:
  // for one who copies them elsewhere at once.
  StateDict ExportState() const;
  StateDict SharedState() const;
  // Copies in; InvalidArgument names an entry that is unknown, missing or of
  // the wrong shape, and nothing changes. What is of the whole may be missing,
  // and stays then.
  absl::Status ImportState(const StateDict& state);

 protected:
  // Without names parameters are called 0, 1, ... over all groups.
  struct Group {
    std::vector<Variable> parameters;
    std::vector<std::string> names;
    std::vector<ops::StateSlot> slots;
    double lr;
  };

  using Targets = std::vector<std::vector<ops::StepTarget>>;  // by group

  // Throws on a parameter that is undefined or listed twice, and on a name that
  // two have.
  explicit Optimizer(std::vector<Group> groups);

  // Steps the targets of each group; throws Error before it writes.
  // No element of a gradient counts for more than `limit`, before it is scaled.
  virtual void Apply(const Targets& targets, double limit) = 0;

 private:
  struct State {
    Tensor steps;                 // i64 [], done so far; undefined at first
    std::vector<Tensor> tensors;  // by slot
    Tensor master;                // f32; of a bf16 or f16 parameter
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
