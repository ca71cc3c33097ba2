// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/policy.h"

#include <algorithm>
#include <cmath>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/loss.h"
#include "autograd/functions/reduce.h"
#include "autograd/variable.h"
#include "core/checkpoint.h"
#include "core/ops/indexing.h"
#include "core/ops/softmax.h"
#include "core/status.h"

namespace baton::examples {
namespace {

constexpr double kLeastDeviation = 1e-6;
constexpr char kNetwork[] = "network", kOptimizer[] = "optimizer";

std::vector<int64_t> WidthsOf(const PolicyOptions& options) {
  std::vector<int64_t> widths = {CartPole::kNumbers};
  widths.insert(widths.end(), options.hidden.begin(), options.hidden.end());
  widths.push_back(CartPole::kActions);
  return widths;
}

// Returns each step's advantage: its discounted return, minus the mean of all
// returns, divided by their standard deviation.
Tensor AdvantagesOf(const std::vector<Episode>& episodes, double gamma) {
  std::vector<float> all;
  for (const Episode& episode : episodes) {
    std::vector<float> returns;
    double later = 0;
    for (int64_t step = 0; step < episode.reward(); ++step) {
      later = 1 + gamma * later;
      returns.push_back(static_cast<float>(later));
    }
    all.insert(all.end(), returns.rbegin(), returns.rend());
  }
  double sum = 0, squares = 0;
  for (const float value : all) sum += value;
  const double mean = sum / static_cast<double>(all.size());
  for (const float value : all) squares += (value - mean) * (value - mean);
  const double deviation =
      std::sqrt(squares / static_cast<double>(all.size())) + kLeastDeviation;
  for (float& value : all)
    value = static_cast<float>((value - mean) / deviation);
  return Tensor::From(all);
}

}  // namespace

Policy::Policy(const PolicyOptions& options)
    : options_(options),
      generator_(options.seed),
      network_({.widths = WidthsOf(options)}, generator_),
      optimizer_(network_.Parameters(), options.optimizer) {}

std::vector<int32_t> Policy::Choose(
    const std::vector<Observation>& observations) {
  const auto count = static_cast<int64_t>(observations.size());
  const Tensor states = Tensor::Empty({count, CartPole::kNumbers});
  float* to = states.data<float>();
  for (const Observation& each : observations)
    to = std::copy(each.state.begin(), each.state.end(), to);
  Tensor shares;
  {
    const MutexLock lock(mutex_);
    const NoGrad no_grad;
    shares = ops::Softmax(network_.Forward(states).tensor(), 1);
  }
  std::vector<int32_t> actions;
  const float* share = shares.data<float>();
  for (const Observation& each : observations) {
    int32_t action = 0;
    float below = share[0];
    while (action + 1 < CartPole::kActions && each.chance >= below)
      below += share[++action];
    actions.push_back(action);
    share += CartPole::kActions;
  }
  return actions;
}

double Policy::Learn(const std::vector<Episode>& episodes) {
  std::vector<Tensor> states, actions;
  for (const Episode& episode : episodes) {
    states.push_back(episode.states);
    actions.push_back(episode.actions);
  }
  const Tensor advantages = AdvantagesOf(episodes, options_.gamma);
  const MutexLock lock(mutex_);
  optimizer_.ZeroGrad();
  const Variable surprise = autograd::CrossEntropy(
      network_.Forward(ops::Cat(states, 0)), ops::Cat(actions, 0),
      {.reduction = Reduction::kNone});
  const Variable loss = autograd::Mean(surprise * advantages);
  loss.Backward();
  optimizer_.Step();
  return loss.tensor().Item();
}

NamedTensors Policy::ExportState() {
  const MutexLock lock(mutex_);
  NamedTensors weights;
  for (const auto& [name, tensor] : network_.StateDict())
    weights.emplace(name, tensor.Clone());
  NamedTensors state = AsPart(kNetwork, weights);
  state.merge(AsPart(kOptimizer, optimizer_.ExportState()));
  return state;
}

absl::Status Policy::ImportState(const NamedTensors& state) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(network_.LoadStateDict(PartOf(state, kNetwork)));
  return optimizer_.ImportState(PartOf(state, kOptimizer));
}

}  // namespace baton::examples
