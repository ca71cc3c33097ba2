// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/shape.h"

#include "autograd/functions/arithmetic.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(ShapeGradients, Reshape) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Reshape(v[0], {3, -1});
      },
      {Random({2, 3, 2})}));
}

TEST(ShapeGradients, Flatten) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Flatten(v[0], 1); },
                        {Random({2, 3, 2})}));
}

TEST(ShapeGradients, Transpose) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Transpose(v[0], 0, -1); },
                        {Random({2, 3, 4})}));
}

TEST(ShapeGradients, Permute) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Permute(v[0], {2, 0, -2});
      },
      {Random({2, 3, 4})}));
}

TEST(ShapeGradients, Slice) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Slice(v[0], 1, 1, 6, 2); },
                        {Random({2, 7})}));
}

TEST(ShapeGradients, Select) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Select(v[0], 1, 2); }, {Random({2, 4})}));
}

TEST(ShapeGradients, Unsqueeze) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Unsqueeze(v[0], 1); }, {Random({2, 3})}));
}

TEST(ShapeGradients, Squeeze) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Squeeze(v[0], 1); },
                        {Random({2, 1, 3})}));
}

TEST(ShapeGradients, Expand) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Expand(v[0], {2, 4, 3});
      },
      {Random({4, 1})}));
}

TEST(ShapeGradients, SplitWithUnusedParts) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        const std::vector<Variable> parts = Split(v[0], 2, 1);
        EXPECT_EQ(parts.size(), 3u);
        return parts[2] * Slice(parts[0], 1, 0, 1);
      },
      {Random({2, 5})}));
}

TEST(ShapeGradients, ContiguousToChannelsLast) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Contiguous(v[0], MemoryFormat::kChannelsLast) * v[0];
      },
      {Random({2, 3, 2, 2})}));
}

TEST(ShapeGradients, AViewSharesItsSourcesVersion) {
  const Variable x(Put(Tensor::Zeros({4})), true);
  const Variable y = Reshape(x, {2, 2});
  const uint64_t before = y.tensor().version();
  x.tensor().Fill(1);
  EXPECT_GT(y.tensor().version(), before);
}

}  // namespace
}  // namespace baton::autograd
