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

// The options of an optimizer that is chosen at run time: its name in
// optim/kinds.h, and its options by their names in Fields(). Optimizers with
// these options step, bit for bit, like the one that they name.
//
//   ASSIGN_OR_RETURN(const auto options,
//                    AnyOptions::Parse("sgd,momentum=0.9"));
//   dist::Optimizer<optim::Any> sgd(agent, options, sources);
struct AnyOptions {
  std::string kind = "sgd";
  double lr = 1e-3;
  std::map<std::string, double> others = {};  // unnamed ones have their
                                              // defaults

  static constexpr auto Fields() {
    return std::tuple{&AnyOptions::kind, &AnyOptions::lr, &AnyOptions::others};
  }

  // Parses "adam" or "adamw,beta2=0.95,amsgrad=1". InvalidArgument lists the
  // available kinds, or the options of the kind.
  static absl::StatusOr<AnyOptions> Parse(const std::string& text);
  static std::vector<std::string> Kinds();
  // Returns InvalidArgument if the kind has no such option.
  absl::Status Set(const std::string& name, double value);

  // These throw Error for an unknown kind or option.
  operator ops::StepRule() const;  // NOLINT(google-explicit-constructor)
  // Returns the number of tensors of the parameter's shape that a step keeps
  // for it.
  int state_tensors() const;
};
using Any = RuleOptimizer<AnyOptions>;

}  // namespace baton::optim
