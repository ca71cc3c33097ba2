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

// The model and the batches of a run's pipeline, and the losses and states of
// an undisturbed training, computed in one thread. The seed determines all of
// it. Each stage's state also depends on running statistics, random numbers and
// momentum. Steps count from 1. Constant after construction.
class Training {
 public:
  static constexpr int64_t kWidth = 4, kRows = 6, kSplit = 2;
  static constexpr double kDrop = 0.25;
  static constexpr optim::SgdOptions kSgd{.lr = 0.1, .momentum = 0.9};
  // RecoveryOptions::most_redone.
  static constexpr int64_t kMostRedone = 3;

  // With 0 stages there is nothing to train.
  Training(uint64_t seed, int stages, int64_t steps);

  int stages() const { return stages_; }
  int64_t steps() const { return static_cast<int64_t>(losses_.size()); }
  // Returns the seed from which the module of a stage is made.
  uint64_t SeedOf(int stage) const {
    return seed_ + static_cast<uint64_t>(stage) + 1;
  }
  Tensor InputsOf(int64_t step) const;
  Tensor TargetsOf(int64_t step) const;

  double LossOf(int64_t step) const {
    return losses_[static_cast<size_t>(step - 1)];
  }
  // Returns the name of a value in which a stage's state differs from that
  // after the step; "" if it does not differ.
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
