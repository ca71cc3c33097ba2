// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/rule_optimizer.h"

namespace baton::optim {

// The options of an optimizer that is chosen when a program runs: its name in
// optim/kinds.h, and its options by their names in Fields(). An optimizer by
// them steps, bit for bit, as the one that they name.
//
//   ASSIGN_OR_RETURN(const auto options,
//   AnyOptions::Parse("sgd,momentum=0.9")); dist::Optimizer<optim::Any>
//   sgd(agent, options, sources);
struct AnyOptions {
  std::string kind = "sgd";
  double lr = 1e-3;
  std::map<std::string, double> others = {};  // the rest has its default

  static constexpr auto Fields() {
    return std::tuple{&AnyOptions::kind, &AnyOptions::lr, &AnyOptions::others};
  }

  // "adam", "adamw,beta2=0.95,amsgrad=1". InvalidArgument lists the kinds, or
  // the options of the kind, that there are.
  static absl::StatusOr<AnyOptions> Parse(const std::string& text);
  static std::vector<std::string> Kinds();
  // InvalidArgument where the kind has no such option.
  absl::Status Set(const std::string& name, double value);

  // Throw Error on a kind or an option that is not there.
  operator ops::StepRule() const;  // NOLINT(google-explicit-constructor)
  // Tensors like the parameter that a step keeps of it.
  int state_tensors() const;
};
using Any = RuleOptimizer<AnyOptions>;

}  // namespace baton::optim
