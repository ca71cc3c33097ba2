// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <utility>
#include <vector>

#include "core/random.h"
#include "models/nn/module.h"

// What holds for a module, and all below it, while a scope lasts.
namespace baton::nn {

// Eval mode, and then for each module the mode that it had before.
// Thread-compatible; writes the module.
class EvalScope {
 public:
  explicit EvalScope(Module& module);
  ~EvalScope();
  EvalScope(const EvalScope&) = delete;
  EvalScope& operator=(const EvalScope&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> training_;
};

// Where a module's generators stand. The module outlives it. A value.
class GeneratorStates {
 public:
  GeneratorStates() = default;  // of no module
  explicit GeneratorStates(const Module& module);
  void Restore() const;

 private:
  std::vector<std::pair<Generator*, Generator::State>> states_;
};

// Forwards that are run again: they draw the numbers that were drawn after
// `drawn_from`, and what they change, generators and buffers such as running
// statistics, is put back at the end. Thread-compatible; writes the module.
class RerunScope {
 public:
  RerunScope(const Module& module, const GeneratorStates& drawn_from);
  ~RerunScope();
  RerunScope(const RerunScope&) = delete;
  RerunScope& operator=(const RerunScope&) = delete;

 private:
  const GeneratorStates generators_;
  std::vector<std::pair<Tensor, Tensor>> buffers_;  // and copies
};

}  // namespace baton::nn
