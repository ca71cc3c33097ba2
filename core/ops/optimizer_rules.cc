// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/optimizer_rules.h"

#include <initializer_list>
#include <utility>

#include "core/status.h"

namespace baton::ops {
namespace {

using Option = std::pair<const char*, double>;

void RequireNotNegative(const char* op, std::initializer_list<Option> options) {
  for (const auto& [name, value] : options)
    Require(value >= 0, op, name, " is negative: ", value);
}

void RequireBetas(const char* op, std::initializer_list<double> betas) {
  for (double beta : betas)
    Require(beta >= 0 && beta < 1, op, "a beta is not in [0, 1): ", beta);
}

}  // namespace

void SgdRule::Check() const {
  RequireNotNegative(
      "sgd",
      {{"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}});
  Require(!nesterov || (momentum > 0 && dampening == 0), "sgd",
          "nesterov needs momentum and no dampening");
}

void AdamRule::Check() const {
  const char* const op = decoupled_weight_decay ? "adamw" : "adam";
  RequireNotNegative(
      op, {{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  RequireBetas(op, {beta1, beta2});
}

void SparseAdamRule::Check() const {
  constexpr char kOp[] = "sparse_adam";
  RequireNotNegative(kOp, {{"lr", lr}, {"eps", eps}});
  RequireBetas(kOp, {beta1, beta2});
}

void AdagradRule::Check() const {
  RequireNotNegative("adagrad",
                     {{"lr", lr},
                      {"lr_decay", lr_decay},
                      {"weight_decay", weight_decay},
                      {"initial_accumulator_value", initial_accumulator_value},
                      {"eps", eps}});
}

void RmsPropRule::Check() const {
  RequireNotNegative("rmsprop", {{"lr", lr},
                                 {"alpha", alpha},
                                 {"eps", eps},
                                 {"weight_decay", weight_decay},
                                 {"momentum", momentum}});
}

void AdadeltaRule::Check() const {
  constexpr char kOp[] = "adadelta";
  RequireNotNegative(
      kOp, {{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  Require(rho >= 0 && rho <= 1, kOp, "rho is not in [0, 1]: ", rho);
}

void AdamaxRule::Check() const {
  constexpr char kOp[] = "adamax";
  RequireNotNegative(
      kOp, {{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  RequireBetas(kOp, {beta1, beta2});
}

void RpropRule::Check() const {
  constexpr char kOp[] = "rprop";
  RequireNotNegative(kOp, {{"lr", lr}, {"step_size_min", step_size_min}});
  Require(eta_minus > 0 && eta_minus < 1 && eta_plus > 1, kOp,
          "eta_minus is not in (0, 1), or eta_plus not above 1: ", eta_minus,
          ", ", eta_plus);
  Require(step_size_min <= step_size_max, kOp, "step_size_min is above ",
          step_size_max);
}

}  // namespace baton::ops
