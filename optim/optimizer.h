// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autograd/variable.h"

namespace baton::optim {

// The gradient to step a parameter by; undefined: leave the parameter alone.
using GradientOf = std::function<Tensor(const Variable& parameter)>;

// See Step.
using SkipOn = std::function<Tensor(Device)>;

// "i.name" -> tensor for parameter i of the list: what a checkpoint keeps.
using StateDict = std::map<std::string, Tensor>;

// Updates a list of leaves in place by their gradients. A parameter without a
// gradient keeps its value and its state, step count included. State is made
// at a parameter's first step, on its device, and follows a parameter that is
// moved or cast later. Gradients stay until ZeroGrad.
//
// A bf16 or f16 parameter has a master copy in f32 in its state: the master is
// stepped, and the parameter is the master rounded. Where something else wrote
// the parameter, the next step, replayed or not, begins from what was written.
//
// On a GPU the rate and the step counts are device memory, so that a recorded
// Step (core/graph.h) obeys set_lr and counts at every replay. Take one Step
// before the recording, with all parameters that have a gradient in it.
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
  // runs, the device's parameters and their state stay as they are.
  void Step(const GradientOf& gradient_of, const SkipOn& skip_on = nullptr);
  void ZeroGrad();

  double lr() const { return lr_; }
  // Throws Error within a recording: the rate is what replays may change.
  void set_lr(double lr);

  const std::vector<Variable>& parameters() const { return parameters_; }

  // The tensors are copies.
  StateDict ExportState() const;
  // Copies in; InvalidArgument names an entry that is unknown, missing or of
  // the wrong shape, and nothing changes.
  absl::Status ImportState(const StateDict& state);

 protected:
  struct State {
    Tensor steps;                 // i64 [], done so far; undefined at first
    std::vector<Tensor> tensors;  // as named below, zeros at first
    Tensor master;                // f32; of a bf16 or f16 parameter
  };
  // One parameter's step. Those but value and grad are as in
  // core/ops/optimizer.h.
  struct Update {
    Tensor value;  // the parameter or its master
    Tensor grad;
    std::vector<Tensor> state;
    bool first_step;
    Tensor lowered, rate, count, skip;
  };

  // Throws on a parameter that is undefined or listed twice.
  Optimizer(std::vector<Variable> parameters,
            std::vector<std::string> tensor_names, double lr);

  virtual void Apply(const std::vector<Update>& updates) = 0;

 private:
  static void Overwrite(const State& to, const State& from);
  void BeginState(const Tensor& parameter, State& state) const;
  static void FollowParameter(const Tensor& parameter, State& state);
  Update UpdateOf(const Tensor& parameter, const Tensor& grad, State& state);
  Tensor RateOn(Device device);
  absl::Status ParseState(const StateDict& from,
                          std::vector<State>& states) const;
  absl::Status ParseParameter(const StateDict& from, size_t i, State& state,
                              size_t& used) const;
  std::vector<std::string> NamesOf(const Tensor& parameter) const;

  const std::vector<Variable> parameters_;
  const std::vector<std::string> tensor_names_;
  double lr_;
  std::map<int, Tensor> rates_;  // lr_ on each GPU; f64 []
  std::vector<State> states_;    // one for each parameter
};

}  // namespace baton::optim
