// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/layer_norm.h"

#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::test::Put;
using ::baton::testing::GradCheck;
using ::baton::testing::GradCheckOptions;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

// Variances in the denominator amplify f32's rounding.
constexpr GradCheckOptions kLooseRows = {.f32_tolerance = 2e-4};

TEST(LayerNormGradients, OfTheLastAxis) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return LayerNorm(v[0], v[1], v[2]); },
                        {Random({2, 3, 6}), Random({6}, 0.5, 2), Random({6})},
                        kLooseRows));
}

TEST(LayerNormGradients, OfSeveralAxes) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) { return LayerNorm(v[0], v[1], v[2], 1e-2); },
      {Random({5, 3, 4}), Random({3, 4}, 0.5, 2), Random({3, 4})}, kLooseRows));
}

TEST(LayerNormGradients, OfParametersHaveTheirDType) {
  const Variable x(Put(Tensor::Ones({2, 4}).To(DType::kBF16)), true);
  const Variable gamma(Put(Tensor::Ones({4})), true);
  const Variable beta(Put(Tensor::Zeros({4}).To(DType::kBF16)), true);
  const Variable y = LayerNorm(x, gamma, beta);
  y.Backward(Put(Tensor::Ones({2, 4}).To(DType::kBF16)));
  EXPECT_EQ(x.grad().dtype(), DType::kBF16);
  EXPECT_EQ(gamma.grad().dtype(), DType::kF32);
  EXPECT_EQ(beta.grad().To(DType::kF32).ToVector<float>(),
            (std::vector<float>{2, 2, 2, 2}));
}

TEST(GroupNormGradients, OfImages) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) { return GroupNorm(v[0], 2, v[1], v[2]); },
      {Random({3, 4, 5, 3}), Random({4}, 0.5, 2), Random({4})}, kLooseRows));
}

TEST(GroupNormGradients, OfVectorsAndOfOneGroup) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) { return GroupNorm(v[0], 2, v[1], v[2], 1e-2); },
      {Random({5, 6}), Random({6}, 0.5, 2), Random({6})}, kLooseRows));
  EXPECT_TRUE(GradCheck([](Inputs v) { return GroupNorm(v[0], 1, v[1], v[2]); },
                        {Random({2, 3, 8}), Random({3}, 0.5, 2), Random({3})},
                        kLooseRows));
}

// Rows long enough for packs and for whole blocks of a GPU.
TEST(GroupNormGradients, OfLargeImages) {
  const auto norm = [](Inputs v) { return GroupNorm(v[0], 2, v[1], v[2]); };
  EXPECT_TRUE(GradCheck(
      norm, {Random({1, 4, 33, 31}), Random({4}, 0.5, 2), Random({4})},
      {.tolerance = 1e-5, .f32_tolerance = 2e-4}));
}

}  // namespace
}  // namespace baton::autograd
