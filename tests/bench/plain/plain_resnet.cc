// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/plain/plain_resnet.h"

#include <array>
#include <memory>

#include "absl/strings/str_cat.h"
#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/pool.h"
#include "autograd/functions/shape.h"
#include "models/nn/sequential.h"

namespace baton::bench {
namespace {

using autograd::Relu;

constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};  // of layer1 .. layer4
constexpr int64_t kExpansion = 4;

nn::Conv2dOptions Square(int64_t kernel, int64_t stride) {
  return {.kernel = {kernel, kernel},
          .stride = {stride, stride},
          .padding = {kernel / 2, kernel / 2},
          .bias = false,
          .init = nn::ConvInit::kKaimingFanOut};
}

struct TensorChannels {
  int64_t in, narrow;
  int64_t out() const { return narrow * kExpansion; }
};

class Block final : public nn::Module {
 public:
  Block(TensorChannels c, int64_t stride, Generator& generator)
      : conv1_(Conv("conv1", c.in, c.narrow, Square(1, 1), generator)),
        bn1_(MakeModule<nn::BatchNorm2d>("bn1", c.narrow)),
        conv2_(Conv("conv2", c.narrow, c.narrow, Square(3, stride), generator)),
        bn2_(MakeModule<nn::BatchNorm2d>("bn2", c.narrow)),
        conv3_(Conv("conv3", c.narrow, c.out(), Square(1, 1), generator)),
        bn3_(MakeModule<nn::BatchNorm2d>("bn3", c.out())) {
    if (stride == 1 && c.in == c.out()) return;
    downsample_ = &MakeModule<nn::Sequential>("downsample");
    downsample_->Emplace<nn::Conv2d>(c.in, c.out(), Square(1, stride),
                                     generator);
    downsample_->Emplace<nn::BatchNorm2d>(c.out());
  }

  Variable Forward(const Variable& x) override {
    Variable y = Relu(bn1_.Forward(conv1_.Forward(x)));
    y = Relu(bn2_.Forward(conv2_.Forward(y)));
    y = bn3_.Forward(conv3_.Forward(y));
    return Relu(y + (downsample_ == nullptr ? x : downsample_->Forward(x)));
  }

 private:
  nn::Conv2d& Conv(const char* name, int64_t in, int64_t out,
                   const nn::Conv2dOptions& options, Generator& generator) {
    return MakeModule<nn::Conv2d>(name, in, out, options, generator);
  }

  nn::Conv2d& conv1_;
  nn::BatchNorm2d& bn1_;
  nn::Conv2d& conv2_;
  nn::BatchNorm2d& bn2_;
  nn::Conv2d& conv3_;
  nn::BatchNorm2d& bn3_;
  nn::Sequential* downsample_ = nullptr;  // null: identity
};

}  // namespace

PlainResNet50::PlainResNet50(int64_t num_classes, int64_t width,
                             Generator& generator)
    : conv1_(
          MakeModule<nn::Conv2d>("conv1", 3, width, Square(7, 2), generator)),
      bn1_(MakeModule<nn::BatchNorm2d>("bn1", width)) {
  TensorChannels channels = {.in = width, .narrow = width};
  for (size_t layer = 0; layer < kBlocks.size(); ++layer) {
    auto& blocks = MakeModule<nn::Sequential>(absl::StrCat("layer", layer + 1));
    for (int block = 0; block < kBlocks[layer]; ++block) {
      const int64_t stride = layer > 0 && block == 0 ? 2 : 1;
      blocks.Emplace<Block>(channels, stride, generator);
      channels.in = channels.out();
    }
    layers_.push_back(&blocks);
    channels.narrow *= 2;
  }
  fc_ = &MakeModule<nn::Linear>("fc", channels.in, num_classes, generator);
}

Variable PlainResNet50::Forward(const Variable& x) {
  Variable y = Relu(bn1_.Forward(conv1_.Forward(x)));
  y = autograd::MaxPool2d(
      y, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  for (nn::Module* layer : layers_) y = layer->Forward(y);
  return fc_->Forward(
      autograd::Flatten(autograd::AdaptiveAvgPool2d(y, 1, 1), 1));
}

}  // namespace baton::bench
