// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace baton::optim {

// Parameters with their own options, and the names that their states are saved
// under; without names they are called 0, 1, ... over all groups.
template <typename Options>
struct ParameterGroup {
  ParameterGroup(std::vector<Variable> of, const Options& by)
      : parameters(std::move(of)), options(by) {}
  ParameterGroup(std::vector<Variable> of, std::vector<std::string> called,
                 const Options& by)
      : parameters(std::move(of)), names(std::move(called)), options(by) {}
  // Takes the result of nn::Module::NamedParameters.
  template <typename Named>
  ParameterGroup(const std::vector<Named>& of, const Options& by)
      : options(by) {
    for (const Named& parameter : of) {
      parameters.push_back(parameter.value);
      names.push_back(parameter.name);
    }
  }

  std::vector<Variable> parameters;
  std::vector<std::string> names;
  Options options;
};

// An optimizer with a rule of core/ops/optimizer_rules.h. The options are the
// rule or convert to one. Constructors throw Error for options out of range.
// Thread-compatible.
template <typename OptionsType>
class RuleOptimizer final : public Optimizer {
 public:
  using Options = OptionsType;
  using Groups = std::vector<ParameterGroup<Options>>;

  RuleOptimizer(std::vector<Variable> parameters, const Options& options)
      : RuleOptimizer(Groups{{std::move(parameters), options}}) {}
  // Takes the result of nn::Module::NamedParameters: the state then fits the
  // model however it is cut into modules.
  template <typename Named>
  RuleOptimizer(const std::vector<Named>& parameters, const Options& options)
      : RuleOptimizer(Groups{{parameters, options}}) {}
  explicit RuleOptimizer(const Groups& groups)
      : Optimizer(Described(groups)), options_(OptionsOf(groups)) {}

 private:
  static std::vector<Group> Described(const Groups& groups) {
    std::vector<Group> described;
    for (const ParameterGroup<Options>& group : groups) {
      const ops::StepRule rule(group.options);
      described.push_back(std::visit(
          [&](const auto& of_kind) {
            of_kind.Check();
            const auto slots = of_kind.Slots();
            return Group{.parameters = group.parameters,
                         .names = group.names,
                         .slots = {slots.begin(), slots.end()},
                         .lr = of_kind.lr};
          },
          rule));
    }
    return described;
  }
  static std::vector<Options> OptionsOf(const Groups& groups) {
    std::vector<Options> all;
    for (const auto& group : groups) all.push_back(group.options);
    return all;
  }

  void Apply(const Targets& targets, double limit) override {
    std::vector<ops::StepGroup> groups;
    for (size_t i = 0; i < targets.size(); ++i) {
      Options options = options_[i];
      options.lr = lr(i);
      groups.push_back({targets[i], ops::StepRule(options)});
    }
    ops::OptimizerStep(groups, limit);
  }

  const std::vector<Options> options_;  // except lr, which may change
};

}  // namespace baton::optim
