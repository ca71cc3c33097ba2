// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/scopes.h"

#include "core/ops/arithmetic.h"

namespace baton::nn {
namespace {

void ListModes(Module& module, std::vector<std::pair<Module*, bool>>& modes) {
  modes.emplace_back(&module, module.is_training());
  for (const auto& child : module.children()) ListModes(*child.value, modes);
}

thread_local PostponedStatistics* postponing = nullptr;

}  // namespace

PostponedStatistics::Scope::Scope(PostponedStatistics& postponed)
    : former_(std::exchange(postponing, &postponed)) {}

PostponedStatistics::Scope::~Scope() { postponing = former_; }

PostponedStatistics* PostponedStatistics::Current() { return postponing; }

Tensor PostponedStatistics::Add(const Tensor& mean, const Tensor& variance,
                                const Tensor& count, double momentum) {
  const auto [position, first] =
      positions_.try_emplace(mean.storage().get(), updates_.size());
  if (first) {
    updates_.push_back({.mean = mean,
                        .variance = variance,
                        .count = count,
                        .batches = {},
                        .momentum = momentum});
  }
  std::vector<Tensor>& batches = updates_[position->second].batches;
  batches.push_back(
      Tensor::Empty({2, mean.numel()}, {.device = mean.device()}));
  return batches.back();
}

void PostponedStatistics::Apply() {
  ops::UpdateRunningStatistics(updates_);
  updates_.clear();
  positions_.clear();
}

EvalScope::EvalScope(Module& module) {
  ListModes(module, training_);
  module.Eval();
}

EvalScope::~EvalScope() {
  // Parents come first, so that what they set below is put right after them.
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
    // A graph may have saved what did not change, as that of a frozen batch
    // norm does, and would refuse it after any write.
    if (!ops::BitEqual(buffer, before)) buffer.CopyFrom(before);
  }
}

}  // namespace baton::nn
