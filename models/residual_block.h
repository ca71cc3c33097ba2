// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/batch_norm.h"
#include "models/nn/conv2d.h"
#include "models/nn/sequential.h"

// The two residual blocks of He et al., "Deep residual learning for image
// recognition", CVPR 2016, with torchvision's names. Thread-compatible.
namespace baton::models {

struct ResidualBlockOptions {
  int64_t in = 64;
  int64_t planes = 64;  // channels of the narrow convolutions, before widening
  int64_t stride = 1;
  int64_t groups = 1;               // of the 3x3 convolution of a Bottleneck
  int64_t width_per_group = 64;     // likewise, where planes are 64
  bool zero_init_residual = false;  // blocks start as the identity
};

// Two 3x3 convolutions; the stride is in the first.
class BasicBlock final : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 1;
  BasicBlock(const ResidualBlockOptions& options, Generator& generator);
  Variable Forward(const Variable& x) override;

 private:
  nn::Conv2d& conv1_;
  nn::BatchNorm2d& bn1_;
  nn::Conv2d& conv2_;
  nn::BatchNorm2d& bn2_;
  nn::Sequential* downsample_ = nullptr;  // null: identity
};

// 1x1, 3x3 (with the stride), 1x1 to four times the planes.
class Bottleneck final : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 4;
  Bottleneck(const ResidualBlockOptions& options, Generator& generator);
  Variable Forward(const Variable& x) override;

 private:
  const int64_t width_;
  nn::Conv2d& conv1_;
  nn::BatchNorm2d& bn1_;
  nn::Conv2d& conv2_;
  nn::BatchNorm2d& bn2_;
  nn::Conv2d& conv3_;
  nn::BatchNorm2d& bn3_;
  nn::Sequential* downsample_ = nullptr;  // null: identity
};

}  // namespace baton::models
