// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/scopes.h"

#include <numeric>

#include "core/ops/arithmetic.h"

namespace baton::nn {
namespace {

void ListModes(Module& module, std::vector<std::pair<Module*, bool>>& modes) {
  modes.emplace_back(&module, module.is_training());
  for (const auto& child : module.children()) ListModes(*child.value, modes);
}

thread_local PostponedStatistics* postponing = nullptr;

// Returns the mean and unbiased variance, [2, C], of all elements of several
// batches, from those of each batch. The squared deviations of a batch are
// those around its own mean plus those of its mean around the mean of all.
Tensor StatisticsOfAll(const std::vector<Tensor>& batches,
                       const std::vector<int64_t>& elements) {
  if (batches.size() == 1) return batches.front();
  const auto all = static_cast<double>(
      std::accumulate(elements.begin(), elements.end(), int64_t{0}));
  const Tensor joined = Tensor::ZerosLike(batches.front());
  const Tensor mean = joined.Select(0, 0), variance = joined.Select(0, 1);
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto count = static_cast<double>(elements[i]);
    ops::AddInto(mean, batches[i].Select(0, 0), count / all);
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto count = static_cast<double>(elements[i]);
    const Tensor off = ops::Sub(batches[i].Select(0, 0), mean);
    ops::AddInto(variance, batches[i].Select(0, 1), (count - 1) / (all - 1));
    ops::AddInto(variance, ops::Mul(off, off), count / (all - 1));
  }
  return joined;
}

}  // namespace

PostponedStatistics::Scope::Scope(PostponedStatistics& postponed)
    : former_(std::exchange(postponing, &postponed)) {}

PostponedStatistics::Scope::~Scope() { postponing = former_; }

PostponedStatistics* PostponedStatistics::Current() { return postponing; }

Tensor PostponedStatistics::Add(const Tensor& mean, const Tensor& variance,
                                const Tensor& count, double momentum,
                                int64_t elements) {
  const auto [position, first] =
      positions_.try_emplace(mean.storage().get(), updates_.size());
  if (first) {
    updates_.push_back({.mean = mean,
                        .variance = variance,
                        .count = count,
                        .batches = {},
                        .momentum = momentum});
    elements_.emplace_back();
  }
  elements_[position->second].push_back(elements);
  std::vector<Tensor>& batches = updates_[position->second].batches;
  batches.push_back(
      Tensor::Empty({2, mean.numel()}, {.device = mean.device()}));
  return batches.back();
}

void PostponedStatistics::Apply() {
  ops::UpdateRunningStatistics(updates_);
  updates_.clear();
  elements_.clear();
  positions_.clear();
}

void PostponedStatistics::ApplyAsOne() {
  for (size_t i = 0; i < updates_.size(); ++i)
    updates_[i].batches = {StatisticsOfAll(updates_[i].batches, elements_[i])};
  Apply();
}

EvalScope::EvalScope(Module& module) {
  ListModes(module, training_);
  module.Eval();
}

EvalScope::~EvalScope() {
  // Parents come first: Train also changes the modules below, which are then
  // set one by one.
  for (const auto& [module, training] : training_) module->Train(training);
}

GeneratorStates::GeneratorStates(const Module& module) {
  for (Generator* generator : module.Generators()) {
    states_.emplace_back(generator, generator->state());
  }
}

void GeneratorStates::Restore() const {
  for (const auto& [generator, state] : states_) generator->set_state(state);
}

RerunScope::RerunScope(const Module& module, const GeneratorStates& drawn_from)
    : generators_(module) {
  for (const auto& buffer : module.NamedBuffers()) {
    buffers_.emplace_back(buffer.value, buffer.value.Clone());
  }
  drawn_from.Restore();
}

RerunScope::~RerunScope() {
  generators_.Restore();
  for (const auto& [buffer, before] : buffers_) {
    // Only buffers that changed are written: a graph may have saved others,
    // such as those of a frozen batch norm, and would refuse them after any
    // write.
    if (!ops::BitEqual(buffer, before)) buffer.CopyFrom(before);
  }
}

}  // namespace baton::nn
