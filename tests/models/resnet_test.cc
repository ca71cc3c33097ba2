// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/resnet.h"

#include <fstream>
#include <map>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "models/nn/loss.h"
#include "tests/support/golden/golden_path.h"

namespace baton::models {
namespace {

std::unique_ptr<ResNet> Made(const ResNetOptions& options) {
  auto model = ResNet::Make(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

Tensor RandomImages(const Shape& shape) {
  Generator generator(3);
  return RandNormal(shape, generator);
}

const ResNetOptions kSmall = {.depth = 18, .num_classes = 5, .width = 4};

std::string Extents(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape) {
    if (!text.empty()) text += "x";
    text += std::to_string(extent);
  }
  return text.empty() ? "scalar" : text;
}

class ResNetOfDepth : public ::testing::TestWithParam<int> {};

TEST_P(ResNetOfDepth, StateHasTorchvisionsNamesAndShapes) {
  std::map<std::string, std::string> expected;
  std::ifstream file(testing::GoldenPath("resnet_names.txt"));
  int depth = 0;
  std::string name;
  std::string extents;
  while (file >> depth >> name >> extents) {
    if (depth == GetParam()) expected[name] = extents;
  }
  std::map<std::string, std::string> actual;
  for (const auto& [key, value] : Made({.depth = GetParam()})->StateDict())
    actual[key] = Extents(value.shape());
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(EveryDepth, ResNetOfDepth,
                         ::testing::Values(18, 34, 50, 101, 152),
                         ::testing::PrintToStringParamName());

TEST(ResNet, HasAsManyParametersAsPublished) {
  EXPECT_EQ(Made({.depth = 18})->NumParameters(), 11'689'512);
  EXPECT_EQ(Made({.depth = 50})->NumParameters(), 25'557'032);
  // ResNeXt50 32x4d.
  EXPECT_EQ(
      Made({.depth = 50, .groups = 32, .width_per_group = 4})->NumParameters(),
      25'028'904);
}

TEST(ResNet, ImagesOfAnySizeBecomeLogits) {
  auto model = Made(kSmall);
  model->Eval();
  for (const Shape& images : {Shape({2, 3, 64, 64}), Shape({1, 3, 75, 50})}) {
    EXPECT_EQ(model->Forward(RandomImages(images)).shape(),
              Shape({images[0], 5}));
  }
  EXPECT_THROW(model->Forward(RandomImages({2, 1, 64, 64})), Error);
}

TEST(ResNet, TheCifarStemKeepsSmallImagesLarge) {
  ResNetOptions options = kSmall;
  options.cifar_stem = true;
  auto stem = ResNet::MakeStage(options, {"stem"}, 0);
  ASSERT_TRUE(stem.ok()) << stem.status();
  EXPECT_EQ((*stem)->Forward(RandomImages({2, 3, 32, 32})).shape(),
            Shape({2, 4, 32, 32}));
  EXPECT_EQ((*stem)->StateDict().at("conv1.weight").shape(),
            Shape({4, 3, 3, 3}));
}

TEST(ResNet, MemoryFormatDoesNotChangeTheResult) {
  ResNetOptions options = kSmall;
  auto last = Made(options);
  options.format = MemoryFormat::kContiguous;
  auto first = Made(options);
  const Tensor images = RandomImages({2, 3, 64, 64});
  EXPECT_TRUE(ops::AllClose(last->Forward(images).tensor(),
                            first->Forward(images).tensor(), 1e-3, 1e-4));
}

TEST(ResNet, WeightsDependOnTheSeed) {
  ResNetOptions options = kSmall;
  const auto weights = [](ResNet& model) {
    return model.StateDict().at("layer2.0.conv1.weight").ToVector<float>();
  };
  const auto zero = weights(*Made(options));
  EXPECT_EQ(zero, weights(*Made(options)));
  options.seed = 1;
  EXPECT_NE(zero, weights(*Made(options)));
}

TEST(ResNet, ConvolutionsStartByFanOutAndResidualsAtZeroIfAsked) {
  auto model = Made(
      {.depth = 50, .num_classes = 5, .width = 16, .zero_init_residual = true});
  const nn::StateMap state = model->StateDict();
  double squares = 0;
  const auto w = state.at("layer4.1.conv2.weight").ToVector<float>();
  for (const double v : w) squares += v * v;
  EXPECT_NEAR(squares / static_cast<double>(w.size()), 2.0 / (128 * 9),
              0.03 * 2.0 / (128 * 9));
  EXPECT_EQ(state.at("layer1.2.bn3.weight").ToVector<float>()[0], 0);
  EXPECT_EQ(state.at("layer1.2.bn2.weight").ToVector<float>()[0], 1);
}

TEST(ResNetStages, TogetherEqualTheWholeModel) {
  const std::vector<std::vector<std::string>> cuts = {
      {"layer2"}, {"stem", "layer1.0", "layer3", "layer4.1"}, {"layer4"}};
  auto whole = Made(kSmall);
  const Tensor images = RandomImages({2, 3, 64, 64});
  const Tensor expected = whole->Forward(images).tensor();
  for (const auto& cut : cuts) {
    auto stages = ResNet::MakeStages(kSmall, cut);
    ASSERT_TRUE(stages.ok()) << stages.status();
    ASSERT_EQ(stages->size(), cut.size() + 1);
    Variable y = images;
    nn::StateMap state;
    for (const auto& stage : *stages) {
      y = stage->Forward(y);
      for (const auto& [name, value] : stage->StateDict())
        EXPECT_TRUE(state.emplace(name, value).second) << name;
    }
    EXPECT_TRUE(ops::BitEqual(y.tensor(), expected));
    EXPECT_EQ(state.size(), whole->StateDict().size());
    EXPECT_TRUE(whole->LoadStateDict(state).ok());
  }
}

TEST(ResNetStages, GradientsThroughTheCutEqualThoseOfTheWholeModel) {
  auto whole = Made(kSmall);
  auto stages = ResNet::MakeStages(kSmall, {"layer2"});
  ASSERT_TRUE(stages.ok());
  const Tensor images = RandomImages({3, 3, 64, 64});
  const Tensor labels = Tensor::From<int64_t>({0, 4, 2});
  nn::CrossEntropy(whole->Forward(images), labels).Backward();
  // As two workers do it: the cut's gradient is carried over by hand.
  const Variable hidden = (*stages)[0]->Forward(images);
  const Variable received(hidden.tensor(), true);
  nn::CrossEntropy((*stages)[1]->Forward(received), labels).Backward();
  hidden.Backward(received.grad());
  size_t compared = 0;
  for (const auto& stage : *stages) {
    for (const auto& [name, value] : stage->NamedParameters()) {
      for (const auto& [whole_name, whole_value] : whole->NamedParameters()) {
        if (name != whole_name) continue;
        EXPECT_TRUE(ops::BitEqual(value.grad(), whole_value.grad())) << name;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, whole->Parameters().size());
}

TEST(ResNetStages, ListTheirUnits) {
  auto units = ResNetUnits(kSmall);
  ASSERT_TRUE(units.ok());
  EXPECT_EQ(units->size(), 10U);
  EXPECT_EQ(units->front(), "stem");
  EXPECT_EQ((*units)[1], "layer1.0");
  EXPECT_EQ(units->back(), "head");
  auto last = ResNet::MakeStage(kSmall, {"layer3", "layer4.0"}, 2);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ((*last)->units(), std::vector<std::string>({"layer4.1", "head"}));
}

TEST(ResNetStages, RefuseCutsThatAreUnknownOutOfOrderOrEmpty) {
  const std::vector<std::vector<std::string>> wrong = {
      {"layer5"}, {"layer2.7"},          {"layer"},
      {""},       {"layer2", "layer1"},  {"layer2", "layer2"},
      {"head"},   {"layer1.1", "layer1"}};
  for (const auto& cuts : wrong) {
    const absl::Status status = ResNet::MakeStages(kSmall, cuts).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.ToString().find("'" + cuts.back() + "'"),
              std::string::npos)
        << status;
  }
  EXPECT_FALSE(ResNet::MakeStage(kSmall, {"layer2"}, 2).ok());
  EXPECT_FALSE(ResNet::MakeStage(kSmall, {"layer2"}, -1).ok());
}

TEST(ResNet, RefusesOptionsThatMakeNoModel) {
  for (const ResNetOptions& options :
       {ResNetOptions{.depth = 20}, ResNetOptions{.num_classes = 0},
        ResNetOptions{.width = 0}, ResNetOptions{.depth = 18, .groups = 2},
        ResNetOptions{.width = 8, .width_per_group = 4},
        ResNetOptions{.width = 5, .groups = 0}}) {
    EXPECT_EQ(ResNet::Make(options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace baton::models
