// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/indexing.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(IndexingGradients, Cat) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Cat({v[0], v[1], v[2]}, 1);
      },
      {Random({2, 1}), Random({2, 3}), Random({2, 2})}));
}

TEST(IndexingGradients, CatByANegativeAxis) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Cat({v[0], v[1]}, -2);
      },
      {Random({1, 3}), Random({2, 3})}));
}

TEST(IndexingGradients, Stack) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Stack({v[0], v[1]}, 1);
      },
      {Random({2, 3}), Random({2, 3})}));
}

TEST(IndexingGradients, StackByANegativeAxis) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Stack({v[0], v[1]}, -1);
      },
      {Random({2, 3}), Random({2, 3})}));
}

TEST(IndexingGradients, GatherSumsRepeats) {
  const Tensor index = Put<int64_t>({0, 0, 2, 1, 2, 2}, {2, 3});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return Gather(v[0], 1, index); },
                        {Random({2, 3})}));
}

TEST(IndexingGradients, ScatterAdd) {
  const Tensor index = Put<int64_t>({0, 3, 0, 1}, {2, 2});
  EXPECT_TRUE(
      GradCheck([&](Inputs v) { return ScatterAdd(v[0], 0, index, v[1]); },
                {Random({4, 2}), Random({2, 2})}));
}

TEST(IndexingGradients, EmbeddingSumsRepeats) {
  const Tensor index = Put<int64_t>({4, 0, 4, 1}, {2, 2});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return Embedding(v[0], index); },
                        {Random({5, 3})}));
}

TEST(IndexingGradients, EmbeddingsPaddingGetsNone) {
  const Tensor index = Put<int64_t>({4, 0, 4, 1}, {2, 2});
  for (const int64_t padding : {int64_t{4}, int64_t{-1}}) {
    const Variable table(Random({5, 3}), true);
    const Variable y = Embedding(table, index, {.padding = padding});
    EXPECT_TRUE(ops::BitEqual(y.tensor(), Embedding(table, index).tensor()));
    y.Backward(Put(Tensor::Full(y.shape(), NAN, {.dtype = DType::kF64})));
    const auto grad = table.grad().ToVector<double>();
    for (size_t i = 0; i < grad.size(); ++i) {
      EXPECT_EQ(std::isnan(grad[i]), i < 6) << i;  // rows 0 and 1
      if (i >= 6) {
        EXPECT_EQ(grad[i], 0) << i;
      }
    }
  }
  EXPECT_THROW(Embedding(Random({5, 3}), index, {.padding = 5}), Error);
  EXPECT_THROW(Embedding(Random({5, 3}), index, {.padding = -6}), Error);
}

}  // namespace
}  // namespace baton::autograd
