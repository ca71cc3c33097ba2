// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "models/nn/module.h"
#include "optim/sgd.h"

namespace baton::sim {

// The model that the pipeline of a run trains, its batches, and what becomes of
// it undisturbed, in one thread: the seed alone decides. What each stage learns
// depends on running statistics, random numbers and momentum as well. Steps
// count from 1. Constant once it is made.
class Training {
 public:
  static constexpr int64_t kWidth = 4, kRows = 6, kSplit = 2;
  static constexpr double kDrop = 0.25;
  static constexpr optim::SgdOptions kSgd{.lr = 0.1, .momentum = 0.9};
  // As RecoveryOptions has it.
  static constexpr int64_t kMostRedone = 3;

  // No stages: there is nothing to train.
  Training(uint64_t seed, int stages, int64_t steps);

  int stages() const { return stages_; }
  int64_t steps() const { return static_cast<int64_t>(losses_.size()); }
  // By which the module of a stage is made.
  uint64_t SeedOf(int stage) const {
    return seed_ + static_cast<uint64_t>(stage) + 1;
  }
  Tensor InputsOf(int64_t step) const;
  Tensor TargetsOf(int64_t step) const;

  double LossOf(int64_t step) const {
    return losses_[static_cast<size_t>(step - 1)];
  }
  // Says in which value a stage's state differs from that after the step, if
  // one does.
  std::string Difference(int stage, int64_t step,
                         const nn::StateMap& state) const;

 private:
  void Run(int64_t steps);

  const uint64_t seed_;
  const int stages_;
  std::vector<double> losses_;                     // by step
  std::vector<std::vector<nn::StateMap>> states_;  // by step and stage
};

}  // namespace baton::sim
