// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/ops/norm.h"
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

// Running statistics that batch norms leave for later: micro-batches that a GPU
// works on at once would else wait for each other at every layer, and those of
// one batch may count as one. Only those in f32 are postponed.
// Thread-compatible; what it collects, one thread collects.
class PostponedStatistics {
 public:
  // While it lives, batch norms that train on this thread hand their batches'
  // statistics to `postponed`.
  class Scope {
   public:
    explicit Scope(PostponedStatistics& postponed);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PostponedStatistics* const former_;
  };
  // That of the innermost scope on this thread; null outside.
  static PostponedStatistics* Current();

  // Where the next batch's statistics of a layer are to be written: [2, C]. It
  // has `elements` of each channel.
  Tensor Add(const Tensor& mean, const Tensor& variance, const Tensor& count,
             double momentum, int64_t elements);
  // Moves the running statistics, in the order in which batches came.
  void Apply();
  // Moves them once, by the statistics of all elements of the batches together.
  void ApplyAsOne();

 private:
  std::vector<ops::RunningUpdate> updates_;     // one for each layer
  std::vector<std::vector<int64_t>> elements_;  // of each of its batches
  std::map<const Storage*, size_t> positions_;  // by the running mean's
};

}  // namespace baton::nn
