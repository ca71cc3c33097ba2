// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "models/nn/batch_norm.h"
#include "models/nn/conv2d.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

namespace baton::bench {

// ResNet50 as one writes it down at first: batch norm, ReLU and the addition of
// the shortcut are ops of their own, and it computes in the order in which its
// input lies. Its state has the names of models::ResNet's. Thread-compatible.
class PlainResNet50 final : public nn::Module {
 public:
  // `width`: channels behind the stem. For images of 3 channels.
  PlainResNet50(int64_t num_classes, int64_t width, Generator& generator);
  // Images [N, 3, H, W] to logits [N, classes].
  Variable Forward(const Variable& x) override;

 private:
  nn::Conv2d& conv1_;
  nn::BatchNorm2d& bn1_;
  std::vector<nn::Module*> layers_;
  nn::Linear* fc_ = nullptr;  // registered behind the layers
};

}  // namespace baton::bench
