// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/activation.h"

#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(ActivationGradients, Relu) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Relu(v[0]); }, {Random({3, 7})}));
}

TEST(ActivationGradients, ReluIsFlatAtZero) {
  Variable x(Put<float>({-1, 0, 1}), true);
  Relu(x).Backward(Put<float>({1, 1, 1}));
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{0, 0, 1}));
}

TEST(ActivationGradients, Sigmoid) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Sigmoid(v[0]); }, {Random({9}, -4, 4)}));
}

TEST(ActivationGradients, Tanh) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Tanh(v[0]); }, {Random({9}, -3, 3)}));
}

TEST(ActivationGradients, Gelu) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Gelu(v[0]); }, {Random({9}, -3, 3)}));
}

TEST(ActivationGradients, Silu) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Silu(v[0]); }, {Random({9}, -4, 4)}));
}

TEST(ActivationGradients, LeakyRelu) {
  for (const double slope : {0.01, 0.0, 2.0}) {
    EXPECT_TRUE(GradCheck([=](Inputs v) { return LeakyRelu(v[0], slope); },
                          {Random({3, 7})}));
  }
}

TEST(ActivationGradients, Dropout) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        Generator generator(3);  // the same mask at each evaluation
        return Dropout(v[0], 0.4, generator);
      },
      {Random({30})}));
}

}  // namespace
}  // namespace baton::autograd
