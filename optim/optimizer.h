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

// "i.name" -> tensor for parameter i of the list: what a checkpoint keeps.
using StateDict = std::map<std::string, Tensor>;

// Updates a list of leaves in place by their gradients. A parameter without a
// gradient keeps its value and its state, step count included. State is made
// at a parameter's first step, on its device. Gradients stay until ZeroGrad.
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
  // By gradients from elsewhere: a context's, or an explicit map.
  void Step(const GradientOf& gradient_of);
  void ZeroGrad();

  virtual double lr() const = 0;
  virtual void set_lr(double lr) = 0;

  const std::vector<Variable>& parameters() const { return parameters_; }

  // The tensors are copies.
  StateDict ExportState() const;
  // Copies in; InvalidArgument names an entry that is unknown, missing or of
  // the wrong shape, and nothing changes.
  absl::Status ImportState(const StateDict& state);

 protected:
  struct State {
    int64_t steps = 0;            // done so far
    std::vector<Tensor> tensors;  // as named below, zeros at first
  };
  struct Update {
    Tensor value;
    Tensor grad;
    State* state;  // steps counts this one already
  };

  // Throws on a parameter that is undefined or listed twice.
  Optimizer(std::vector<Variable> parameters,
            std::vector<std::string> tensor_names);

  virtual void Apply(const std::vector<Update>& updates) = 0;

 private:
  absl::Status ParseState(const StateDict& from,
                          std::vector<State>& states) const;

  const std::vector<Variable> parameters_;
  const std::vector<std::string> tensor_names_;
  std::vector<State> states_;  // one for each parameter
};

}  // namespace baton::optim
