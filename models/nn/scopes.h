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

// Scopes that change a module, and all modules below it, while they last.
namespace baton::nn {

// Sets eval mode; at its end each module gets back its former mode.
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

// The states of a module's generators. The module must outlive it. Value type.
class GeneratorStates {
 public:
  GeneratorStates() = default;  // of no module
  explicit GeneratorStates(const Module& module);
  void Restore() const;

 private:
  std::vector<std::pair<Generator*, Generator::State>> states_;
};

// Lets forwards be run again. They draw the same random numbers as were drawn
// from `drawn_from` on. Generators and buffers, such as running statistics,
// that they change are restored at the end. Thread-compatible; writes the
// module.
class RerunScope {
 public:
  RerunScope(const Module& module, const GeneratorStates& drawn_from);
  ~RerunScope();
  RerunScope(const RerunScope&) = delete;
  RerunScope& operator=(const RerunScope&) = delete;

 private:
  const GeneratorStates generators_;
  std::vector<std::pair<Tensor, Tensor>> buffers_;  // with copies
};

// Postpones the updates of batch norms' running statistics. Without it,
// micro-batches that a GPU processes concurrently would wait for each other at
// every layer; it also allows the micro-batches of a batch to count as one.
// Only statistics in f32 are postponed. Thread-compatible; one thread collects
// them.
class PostponedStatistics {
 public:
  // During this scope, batch norms that train on this thread pass their
  // batches' statistics to `postponed`.
  class Scope {
   public:
    explicit Scope(PostponedStatistics& postponed);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PostponedStatistics* const former_;
  };
  // Returns the postponed statistics of the innermost scope on this thread;
  // null outside of one.
  static PostponedStatistics* Current();

  // Returns the tensor [2, C] that the statistics of a layer's next batch must
  // be written to. The batch has `elements` elements of each channel.
  Tensor Add(const Tensor& mean, const Tensor& variance, const Tensor& count,
             double momentum, int64_t elements);
  // Updates the running statistics by each batch, in the order in which they
  // came.
  void Apply();
  // Updates them once, by the statistics of all batches' elements together.
  void ApplyAsOne();

 private:
  std::vector<ops::RunningUpdate> updates_;     // one for each layer
  std::vector<std::vector<int64_t>> elements_;  // of each of its batches
  std::map<const Storage*, size_t> positions_;  // by the running mean's storage
};

}  // namespace baton::nn
