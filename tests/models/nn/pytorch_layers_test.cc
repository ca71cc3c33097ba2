// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "autograd/functions/linear.h"
#include "models/nn/activation.h"
#include "models/nn/conv1d.h"
#include "models/nn/conv_transpose2d.h"
#include "models/nn/embedding_bag.h"
#include "models/nn/group_norm.h"
#include "models/nn/linear.h"
#include "models/nn/module_list.h"
#include "models/nn/sequential.h"
#include "tests/support/error_of.h"
#include "tests/support/golden/golden_case.h"
#include "tests/support/test_device.h"

// Layers against tools/golden/layers.py.
namespace baton::nn {
namespace {

using ::baton::test::ErrorOf;
using ::baton::test::Put;
using ::baton::testing::GoldenCase;
using ::baton::testing::LargestDistance;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFile[] = "layers.safetensors";
constexpr double kTolerance = 1e-11;
constexpr ops::BagMode kSum = ops::BagMode::kSum, kMean = ops::BagMode::kMean,
                       kMax = ops::BagMode::kMax;

void ExpectPyTorchs(const std::string& name, Module&& layer) {
  const GoldenCase golden(kFile, name);
  golden.Load(layer);
  const Variable x = golden.Leaf("x");
  const Variable y = layer.Forward(x);
  EXPECT_LT(LargestDistance(y.tensor(), golden["y"]), kTolerance) << name;
  y.Backward(golden["dy"]);
  EXPECT_LT(LargestDistance(x.grad(), golden["dx"]), kTolerance) << name;
  golden.ExpectGradients(layer, kTolerance);
}

TEST(Conv1d, ComputesWhatPyTorchDoes) {
  Generator generator(0);
  ExpectPyTorchs("conv1d", Conv1d(4, 6, {}, generator));
  ExpectPyTorchs("conv1d_strided", Conv1d(4, 6,
                                          {.kernel = 4,
                                           .stride = 2,
                                           .padding = 3,
                                           .dilation = 2,
                                           .groups = 2,
                                           .bias = false},
                                          generator));
}

TEST(Conv1d, RefusesWhatIsNoSequenceOfVectors) {
  Generator generator(0);
  Conv1d conv(4, 6, {}, generator);
  EXPECT_EQ(conv.weight().shape(), Shape({6, 4, 3}));
  EXPECT_THAT(ErrorOf([&] {
                conv.Forward(Tensor::Ones({2, 4, 5, 6}));
              }),
              HasSubstr("[conv1d] expected x [N, C, L]"));
  EXPECT_THAT(ErrorOf([&] {
                conv.Forward(Tensor::Ones({2, 3, 5}));
              }),
              HasSubstr("[conv2d] expected weight"));
  EXPECT_THROW(Conv1d(3, 4, {.groups = 2}, generator), Error);
}

TEST(ConvTranspose2d, ComputesWhatPyTorchDoes) {
  Generator generator(0);
  ExpectPyTorchs("conv_transpose2d",
                 ConvTranspose2d(3, 5, {.kernel = {3, 2}}, generator));
  ExpectPyTorchs("conv_transpose2d_strided",
                 ConvTranspose2d(4, 6,
                                 {.kernel = {3, 4},
                                  .stride = {2, 3},
                                  .padding = {1, 2},
                                  .output_padding = {1, 2},
                                  .groups = 2},
                                 generator));
  ExpectPyTorchs("conv_transpose2d_dilated",
                 ConvTranspose2d(4, 2,
                                 {.padding = {1, 1},
                                  .output_padding = {1, 2},
                                  .dilation = {3, 3},
                                  .bias = false},
                                 generator));
}

TEST(ConvTranspose2d, RefusesOutputPaddingOfAStrideAndMore) {
  Generator generator(0);
  ConvTranspose2d conv(2, 3, {.stride = {2, 2}, .output_padding = {0, 2}},
                       generator);
  EXPECT_EQ(conv.weight().shape(), Shape({2, 3, 3, 3}));
  EXPECT_THAT(ErrorOf([&] {
                conv.Forward(Tensor::Ones({1, 2, 4, 4}));
              }),
              HasSubstr("[conv_transpose2d] expected output padding"));
  EXPECT_THROW(ConvTranspose2d(3, 4, {.groups = 2}, generator), Error);
}

TEST(GroupNorm, ComputesWhatPyTorchDoes) {
  ExpectPyTorchs("group_norm", GroupNorm(2, 6));
  ExpectPyTorchs("group_norm_plain", GroupNorm(3, 6, 1e-3));
  ExpectPyTorchs("group_norm_one", GroupNorm(1, 5));
}

TEST(GroupNorm, StartsAsTheIdentityAndKeepsItsPrecision) {
  GroupNorm norm(2, 4);
  EXPECT_THAT(norm.weight().tensor().ToVector<float>(), Each(1));
  EXPECT_THAT(norm.bias().tensor().ToVector<float>(), Each(0));
  norm.LowerPrecision(DType::kBF16);
  EXPECT_EQ(norm.weight().dtype(), DType::kF32);
  const Tensor x = Tensor::Ones({2, 4, 3}).To(DType::kBF16);
  EXPECT_EQ(norm.Forward(x).dtype(), DType::kBF16);
  EXPECT_EQ(norm.Forward(Tensor::Ones({2, 4, 0})).shape(), Shape({2, 4, 0}));
  EXPECT_THROW(GroupNorm(3, 4), Error);
  EXPECT_THROW(norm.Forward(Tensor::Ones({2, 3})), Error);
}

TEST(LeakyReLU, ComputesWhatPyTorchDoes) {
  ExpectPyTorchs("leaky_relu", LeakyReLU());
  ExpectPyTorchs("leaky_relu_steep", LeakyReLU(1.5));
}

void ExpectPyTorchsBag(const std::string& name,
                       const ops::EmbeddingBagOptions& options) {
  const GoldenCase golden(kFile, name);
  Generator generator(0);
  EmbeddingBag layer(6, 3, generator, options);
  golden.Load(layer);
  const Variable weights = golden.Leaf("weights");
  const Variable y = layer.Run(golden["x"], golden["offsets"], weights);
  EXPECT_LT(LargestDistance(y.tensor(), golden["y"]), kTolerance) << name;
  y.Backward(golden["dy"]);
  EXPECT_EQ(layer.weight().gradient().is_rows(), options.sparse) << name;
  golden.ExpectGradients(layer, kTolerance);
  if (weights.defined()) {
    EXPECT_LT(LargestDistance(weights.grad(), golden["dweights"]), kTolerance)
        << name;
  }
}

TEST(EmbeddingBag, ComputesWhatPyTorchDoes) {
  ExpectPyTorchsBag("bag_mean", {});
  ExpectPyTorchsBag("bag_sum", {.mode = kSum});
  ExpectPyTorchsBag("bag_max", {.mode = kMax});
  ExpectPyTorchsBag("bag_mean_padded", {.mode = kMean, .padding_index = 2});
  ExpectPyTorchsBag("bag_sum_padded", {.mode = kSum, .padding_index = 2});
  ExpectPyTorchsBag("bag_max_padded", {.mode = kMax, .padding_index = 2});
  ExpectPyTorchsBag("bag_sum_last",
                    {.mode = kSum, .include_last_offset = true});
  ExpectPyTorchsBag("bag_mean", {.sparse = true});
  ExpectPyTorchsBag("bag_sum_padded",
                    {.mode = kSum, .padding_index = 2, .sparse = true});
}

TEST(EmbeddingBag, StartsWithAPaddingRowOfZeros) {
  Generator generator(0);
  EmbeddingBag bag(4, 2, generator, {.padding_index = 1});
  EXPECT_THAT(bag.weight().tensor().Select(0, 1).ToVector<float>(), Each(0));
  EXPECT_THROW(EmbeddingBag(4, 2, generator, {.padding_index = 4}), Error);
}

TEST(ModuleList, NamesChildrenByIndexAndHasNoForward) {
  Generator generator(0);
  ModuleList<Linear> layers;
  layers.Emplace(4, 3, generator);
  layers.Add(std::make_shared<Linear>(3, 2, generator));
  ASSERT_EQ(layers.size(), 2U);
  std::vector<std::string> names;
  for (const auto& named : layers.NamedParameters())
    names.push_back(named.name);
  EXPECT_THAT(names, ElementsAre("0.weight", "0.bias", "1.weight", "1.bias"));
  EXPECT_EQ(layers[1].weight().shape(), Shape({2, 3}));
  Variable x(Tensor::Ones({5, 4}));
  for (Linear* layer : layers) x = layer->Forward(x);
  EXPECT_EQ(x.shape(), Shape({5, 2}));
  EXPECT_THROW(layers[2], Error);
  EXPECT_THAT(ErrorOf([&] { layers.Forward(x); }), HasSubstr("no forward"));
}

// Whose names are those of PyTorch's ModuleList, so that states fit both ways.
TEST(ModuleList, LoadsTheStateOfASequentialOfTheSameLayers) {
  Generator generator(0);
  ModuleList<> list;
  Sequential sequential;
  for (int i = 0; i < 3; ++i) {
    list.Emplace<Linear>(4, 4, generator);
    sequential.Emplace<Linear>(4, 4, generator);
  }
  ASSERT_TRUE(list.LoadStateDict(sequential.StateDict()).ok());
  Variable x(Tensor::Ones({1, 4}));
  const Variable y = sequential.Forward(x);
  for (Module* layer : list) x = layer->Forward(x);
  EXPECT_EQ(x.tensor().ToVector<float>(), y.tensor().ToVector<float>());
}

}  // namespace
}  // namespace baton::nn
