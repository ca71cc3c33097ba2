// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/conv.h"

#include <gmock/gmock.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using ::testing::Each;
using Inputs = const std::vector<Variable>&;

Variable Conv(Inputs v, const ops::Conv2dOptions& options) {
  return Conv2d(v[0], v[1], v.size() > 2 ? v[2] : Variable(), options);
}

TEST(ConvGradients, Plain) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Conv(v, {}); },
                {Random({2, 3, 5, 4}), Random({4, 3, 3, 2}), Random({4})}));
}

// Conv2d adds its input's gradient to what is there.
TEST(ConvGradients, AnInputOfTwoConvolutionsGetsTheSumOfTheirGradients) {
  Variable weight(test::Put(Tensor::Full({3, 2, 1, 1}, 2)), true);
  const Variable x(test::Put(Tensor::Ones({1, 2, 4, 4})), true);
  const Variable inner = x * 1.0;
  const Variable left = Conv2d(inner, weight, Variable(), {});
  const Variable right = Conv2d(inner, weight, Variable(), {});
  Sum(left + right * 10.0 + Sum(inner)).Backward();
  // Two weights of 3 outputs each, once and ten times, and the 48 outputs that
  // the inner sum is added to.
  const std::vector<float> grad =
      x.grad().To(Device::Cpu()).Contiguous().ToVector<float>();
  EXPECT_THAT(grad, Each(3 * 2 + 10 * 3 * 2 + 48));
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

TEST(ConvTransposeGradients, StridePaddingAndGroups) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return ConvTranspose2d(v[0], v[1], v[2],
                               {.stride = {2, 3},
                                .padding = {1, 0},
                                .output_padding = {1, 2},
                                .groups = 2});
      },
      {Random({2, 4, 3, 4}), Random({4, 2, 3, 2}), Random({4})}));
}

TEST(ConvTransposeGradients, OutputPaddingOfTheDilation) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return ConvTranspose2d(v[0], v[1], Variable(),
                               {.output_padding = {1, 2}, .dilation = {2, 3}});
      },
      {Random({1, 2, 3, 3}), Random({2, 3, 2, 2})}));
}

TEST(Conv1dGradients, StridePaddingDilationAndGroups) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Conv1d(v[0], v[1], v[2],
                      {.stride = 2, .padding = 2, .dilation = 2, .groups = 2});
      },
      {Random({2, 4, 9}), Random({6, 2, 3}), Random({6})}));
}

}  // namespace
}  // namespace baton::autograd
