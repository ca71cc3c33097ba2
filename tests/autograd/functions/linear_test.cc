// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/linear.h"

#include "tests/support/gradcheck.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

TEST(LinearGradients, Matmul) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Matmul(v[0], v[1]); },
                        {Random({3, 4}), Random({4, 2})}));
}

TEST(LinearGradients, MatmulOfBatches) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Matmul(v[0], v[1]); },
                        {Random({2, 3, 4}), Random({2, 4, 2})}));
}

TEST(LinearGradients, MatmulBroadcastsLeft) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Matmul(v[0], v[1]); },
                        {Random({3, 4}), Random({2, 4, 2})}));
}

TEST(LinearGradients, MatmulBroadcastsRight) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Matmul(v[0], v[1]); },
                        {Random({2, 5, 3, 4}), Random({4, 2})}));
}

TEST(LinearGradients, Linear) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Linear(v[0], v[1], v[2]); },
                        {Random({3, 4}), Random({2, 4}), Random({2})}));
}

TEST(LinearGradients, LinearOverLeadingAxes) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Linear(v[0], v[1], v[2]); },
                        {Random({2, 3, 4}), Random({5, 4}), Random({5})}));
}

TEST(LinearGradients, LinearWithoutBias) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Linear(v[0], v[1]); },
                        {Random({3, 4}), Random({2, 4})}));
}

TEST(LinearGradients, LinearActivationOfEveryKind) {
  for (Activation activation : {Activation::kRelu, Activation::kSigmoid,
                                Activation::kTanh, Activation::kGelu}) {
    EXPECT_TRUE(GradCheck(
        [&](Inputs v) {
          return LinearActivation(activation, v[0], v[1], v[2]);
        },
        {Random({2, 3, 4}), Random({5, 4}), Random({5})}));
    EXPECT_TRUE(GradCheck(
        [&](Inputs v) { return LinearActivation(activation, v[0], v[1]); },
        {Random({3, 4}), Random({2, 4})}));
  }
}

}  // namespace
}  // namespace baton::autograd
