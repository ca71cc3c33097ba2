// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/conv.h"

#include "autograd/functions/shape.h"
#include "tests/support/gradcheck.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

Variable Conv(Inputs v, const ops::Conv2dOptions& options) {
  return Conv2d(v[0], v[1], v.size() > 2 ? v[2] : Variable(), options);
}

TEST(ConvGradients, Plain) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Conv(v, {}); },
                {Random({2, 3, 5, 4}), Random({4, 3, 3, 2}), Random({4})}));
}

TEST(ConvGradients, StrideAndPadding) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Conv(v, {.stride = {2, 1}, .padding = {1, 2}});
      },
      {Random({1, 2, 5, 5}), Random({3, 2, 3, 3})}));
}

TEST(ConvGradients, Dilation) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Conv(v, {.dilation = {2, 2}});
      },
      {Random({1, 2, 6, 6}), Random({2, 2, 2, 3})}));
}

TEST(ConvGradients, Groups) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Conv(v, {.groups = 2}); },
                {Random({1, 4, 4, 4}), Random({6, 2, 3, 3}), Random({6})}));
}

TEST(ConvGradients, ChannelsLast) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        const Variable x = Contiguous(v[0], MemoryFormat::kChannelsLast);
        return Conv2d(x, v[1], v[2], {.padding = {1, 1}});
      },
      {Random({2, 3, 4, 4}), Random({4, 3, 3, 3}), Random({4})}));
}

}  // namespace
}  // namespace baton::autograd
