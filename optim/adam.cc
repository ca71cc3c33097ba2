// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/adam.h"

#include <string>
#include <utility>

#include "core/status.h"

namespace baton::optim {
namespace {

std::vector<std::string> TensorNames(bool amsgrad) {
  std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
  if (amsgrad) names.push_back("max_exp_avg_sq");
  return names;
}

template <typename Options>
ops::AdamOptions Kernel(const Options& options, bool decoupled) {
  return {.lr = options.lr,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .amsgrad = options.amsgrad,
          .maximize = options.maximize,
          .decoupled_decay = decoupled};
}

void Check(const char* op, const ops::AdamOptions& options) {
  Require(options.lr >= 0, op, "lr is negative: ", options.lr);
  Require(options.eps >= 0, op, "eps is negative: ", options.eps);
  Require(options.weight_decay >= 0, op,
          "weight_decay is negative: ", options.weight_decay);
  for (double beta : {options.beta1, options.beta2})
    Require(beta >= 0 && beta < 1, op, "a beta is not in [0, 1): ", beta);
}

}  // namespace

Adam::Adam(std::vector<Variable> parameters, const AdamOptions& options)
    : Adam("adam", std::move(parameters), Kernel(options, false)) {}

Adam::Adam(const char* op, std::vector<Variable> parameters,
           const ops::AdamOptions& options)
    : Optimizer(std::move(parameters), TensorNames(options.amsgrad),
                options.lr),
      options_(options) {
  Check(op, options);
}

void Adam::Apply(const std::vector<Update>& updates) {
  std::vector<ops::AdamTarget> targets;
  for (const Update& update : updates) {
    targets.push_back(
        {.value = update.value,
         .grad = update.grad,
         .mean = update.state[0],
         .variance = update.state[1],
         .max_variance = options_.amsgrad ? update.state[2] : Tensor(),
         .lowered = update.lowered,
         .rate = update.rate,
         .count = update.count,
         .skip = update.skip});
  }
  ops::AdamOptions options = options_;
  options.lr = lr();
  ops::AdamStep(targets, options);
}

AdamW::AdamW(std::vector<Variable> parameters, const AdamWOptions& options)
    : Adam("adamw", std::move(parameters), Kernel(options, true)) {}

}  // namespace baton::optim
