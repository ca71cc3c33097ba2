// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/conv2d.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

namespace baton::models {

// LeNet-5 (LeCun et al., "Gradient-based learning applied to document
// recognition", 1998) with ReLU and max pools: grey images [N, 1, 28, 28] to
// logits [N, classes]. Layers "conv1", "conv2", "fc1", "fc2", "fc3".
// Thread-compatible.
class LeNet final : public nn::Module {
 public:
  explicit LeNet(Generator& generator, int64_t classes = 10);
  Variable Forward(const Variable& x) override;

 private:
  nn::Conv2d& conv1_;
  nn::Conv2d& conv2_;
  nn::Linear& fc1_;
  nn::Linear& fc2_;
  nn::Linear& fc3_;
};

}  // namespace baton::models
