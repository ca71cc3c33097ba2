// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

namespace baton::models {

// The smallest model that can be split in two: [N, 10] -> net1 and ReLU -> [N,
// 10] -> net2 -> [N, 5]. Thread-compatible.
class ToyModel final : public nn::Module {
 public:
  static constexpr int64_t kIn = 10;
  static constexpr int64_t kHidden = 10;
  static constexpr int64_t kOut = 5;

  explicit ToyModel(Generator& generator);
  Variable Forward(const Variable& x) override;

  Variable ForwardFront(const Variable& x);  // up to the ReLU
  Variable ForwardBack(const Variable& hidden);

 private:
  nn::Linear& net1_;
  nn::Linear& net2_;
};

}  // namespace baton::models
