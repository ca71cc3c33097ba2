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

}  // namespace

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
