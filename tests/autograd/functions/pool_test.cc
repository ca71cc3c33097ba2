// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/pool.h"

#include "tests/support/gradcheck.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

TEST(PoolGradients, Max) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return MaxPool2d(v[0], {}); },
                        {Random({2, 2, 4, 6})}));
}

TEST(PoolGradients, MaxWithPaddingAndOverlap) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return MaxPool2d(
            v[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
      },
      {Random({1, 3, 5, 6})}));
}

TEST(PoolGradients, AverageCountsPadding) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return AvgPool2d(
            v[0], {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
      },
      {Random({1, 2, 5, 4})}));
}

TEST(PoolGradients, AdaptiveAverageToOne) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return AdaptiveAvgPool2d(v[0], 1, 1); },
                        {Random({2, 3, 4, 4})}));
}

TEST(PoolGradients, AdaptiveAverageWithOverlappingCells) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return AdaptiveAvgPool2d(v[0], 3, 2); },
                        {Random({1, 2, 5, 5})}));
}

}  // namespace
}  // namespace baton::autograd
