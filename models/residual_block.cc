// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/residual_block.h"

#include <memory>

namespace baton::models {
namespace {

nn::Conv2dOptions Square(int64_t kernel, int64_t stride, int64_t groups = 1) {
  const int64_t pad = kernel / 2;
  return {.kernel = {kernel, kernel},
          .stride = {stride, stride},
          .padding = {pad, pad},
          .groups = groups,
          .bias = false,
          .init = nn::ConvInit::kKaimingFanOut};
}

// Returns the projection for the shortcut of a block that changes the shape;
// null for other blocks.
std::shared_ptr<nn::Sequential> MakeDownsample(
    const ResidualBlockOptions& options, int64_t out, Generator& generator) {
  if (options.stride == 1 && options.in == out) return nullptr;
  auto downsample = std::make_shared<nn::Sequential>();
  downsample->Emplace<nn::Conv2d>(options.in, out, Square(1, options.stride),
                                  generator);
  downsample->Emplace<nn::BatchNorm2d>(out);
  return downsample;
}

int64_t BottleneckWidth(const ResidualBlockOptions& options) {
  return options.planes * options.width_per_group / 64 * options.groups;
}

}  // namespace

BasicBlock::BasicBlock(const ResidualBlockOptions& o, Generator& generator)
    : conv1_(MakeModule<nn::Conv2d>("conv1", o.in, o.planes,
                                    Square(3, o.stride), generator)),
      bn1_(MakeModule<nn::BatchNorm2d>("bn1", o.planes)),
      conv2_(MakeModule<nn::Conv2d>("conv2", o.planes, o.planes, Square(3, 1),
                                    generator)),
      bn2_(MakeModule<nn::BatchNorm2d>("bn2", o.planes)) {
  if (o.zero_init_residual) bn2_.weight().tensor().Fill(0);
  auto downsample = MakeDownsample(o, o.planes, generator);
  if (downsample) downsample_ = &RegisterModule("downsample", downsample);
}

Variable BasicBlock::Forward(const Variable& x) {
  const Variable shortcut = downsample_ ? (*downsample_)(x) : x;
  const Variable y = bn1_.ForwardRelu(conv1_(x));
  return bn2_.ForwardAddRelu(conv2_(y), shortcut);
}

Bottleneck::Bottleneck(const ResidualBlockOptions& o, Generator& generator)
    : width_(BottleneckWidth(o)),
      conv1_(MakeModule<nn::Conv2d>("conv1", o.in, width_, Square(1, 1),
                                    generator)),
      bn1_(MakeModule<nn::BatchNorm2d>("bn1", width_)),
      conv2_(MakeModule<nn::Conv2d>("conv2", width_, width_,
                                    Square(3, o.stride, o.groups), generator)),
      bn2_(MakeModule<nn::BatchNorm2d>("bn2", width_)),
      conv3_(MakeModule<nn::Conv2d>("conv3", width_, o.planes * kExpansion,
                                    Square(1, 1), generator)),
      bn3_(MakeModule<nn::BatchNorm2d>("bn3", o.planes * kExpansion)) {
  if (o.zero_init_residual) bn3_.weight().tensor().Fill(0);
  auto downsample = MakeDownsample(o, o.planes * kExpansion, generator);
  if (downsample) downsample_ = &RegisterModule("downsample", downsample);
}

Variable Bottleneck::Forward(const Variable& x) {
  const Variable shortcut = downsample_ ? (*downsample_)(x) : x;
  Variable y = bn1_.ForwardRelu(conv1_(x));
  y = bn2_.ForwardRelu(conv2_(y));
  return bn3_.ForwardAddRelu(conv3_(y), shortcut);
}

}  // namespace baton::models
