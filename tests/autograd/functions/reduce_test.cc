// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/reduce.h"

#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(ReduceGradients, SumOfAll) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Sum(v[0]); }, {Random({2, 3})}));
}

TEST(ReduceGradients, SumOverAxes) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Sum(v[0], {0, -1});
      },
      {Random({2, 3, 4})}));
}

TEST(ReduceGradients, SumKeepingAxes) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Sum(v[0], {1}, true); },
                        {Random({2, 3, 4})}));
}

TEST(ReduceGradients, MeanOfAll) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Mean(v[0]); }, {Random({2, 3})}));
}

TEST(ReduceGradients, MeanOverAxes) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Mean(v[0], {-1}, true); },
                        {Random({2, 3, 4})}));
}

TEST(ReduceGradients, Max) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Max(v[0], 1).values; },
                        {Random({4, 6})}));
}

TEST(ReduceGradients, MinKeepingTheAxis) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Min(v[0], 0, true).values; },
                        {Random({4, 3, 2})}));
}

TEST(ReduceGradients, TheFirstOfEqualMaximaGetsAll) {
  Variable x(Put<float>({1, 7, 7}), true);
  Max(x, 0).values.Backward();
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{0, 1, 0}));
}

TEST(ReduceGradients, TheGradientOfASumFillsItsMemory) {
  Variable x(Put(Tensor::Zeros({2, 3})), true);
  Sum(x).Backward();
  EXPECT_TRUE(x.grad().IsContiguous());
}

}  // namespace
}  // namespace baton::autograd
