// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/training.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "core/compute_threads.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/nn/loss.h"
#include "tests/support/toy_stages.h"

namespace baton::sim {
namespace {

Generator GeneratorOf(uint64_t seed, int64_t step) {
  return Generator(seed * 1'000'003 + static_cast<uint64_t>(step));
}

nn::StateMap CopyOf(const nn::Module& module) {
  nn::StateMap copy;
  for (const auto& [name, tensor] : module.StateDict())
    copy[name] = tensor.Clone();
  return copy;
}

}  // namespace

Training::Training(uint64_t seed, int stages, int64_t steps)
    : seed_(seed), stages_(stages) {
  if (stages > 0) Run(steps);
}

Tensor Training::InputsOf(int64_t step) const {
  Generator generator = GeneratorOf(seed_, step);
  return RandNormal({kRows, kWidth}, generator);
}

Tensor Training::TargetsOf(int64_t step) const {
  Generator generator = GeneratorOf(~seed_, step);
  return RandInt(0, kWidth, {kRows}, generator);
}

void Training::Run(int64_t steps) {
  const ComputeThreadsScope alone(1);  // OpenMP's threads are not simulated
  std::vector<std::unique_ptr<testing::NoisyStage>> modules;
  std::vector<Variable> parameters;
  for (int stage = 0; stage < stages_; ++stage) {
    modules.push_back(
        std::make_unique<testing::NoisyStage>(kWidth, kDrop, SeedOf(stage)));
    for (const Variable& parameter : modules.back()->Parameters())
      parameters.push_back(parameter);
  }
  optim::Sgd sgd(parameters, kSgd);
  const auto note = [&] {
    states_.emplace_back();
    for (const auto& module : modules)
      states_.back().push_back(CopyOf(*module));
  };
  note();
  for (int64_t step = 1; step <= steps; ++step) {
    const Tensor inputs = InputsOf(step), targets = TargetsOf(step);
    double sum = 0;
    sgd.ZeroGrad();
    for (int64_t row = 0; row < kRows; row += kSplit) {
      Variable value(inputs.Slice(0, row, row + kSplit));
      for (const auto& module : modules) value = module->Forward(value);
      const Variable loss = autograd::MulScalar(
          nn::CrossEntropy(value, targets.Slice(0, row, row + kSplit)),
          static_cast<double>(kSplit) / static_cast<double>(kRows));
      sum += loss.tensor().Item();
      loss.Backward();
    }
    sgd.Step();
    losses_.push_back(sum);
    note();
  }
}

std::string Training::Difference(int stage, int64_t step,
                                 const nn::StateMap& state) const {
  const nn::StateMap& wanted =
      states_[static_cast<size_t>(step)][static_cast<size_t>(stage)];
  for (const auto& [name, tensor] : wanted) {
    const auto found = state.find(name);
    if (found == state.end()) return absl::StrCat("no ", name);
    if (!ops::BitEqual(found->second, tensor)) return name;
  }
  return "";
}

}  // namespace baton::sim
