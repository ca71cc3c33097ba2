// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/sort.h"

#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(SortGradients, Sort) {
  for (int axis : {0, -1}) {
    for (bool descending : {false, true}) {
      EXPECT_TRUE(GradCheck(
          [&](Inputs v) { return Sort(v[0], axis, descending).values; },
          {Random({4, 5})}));
    }
  }
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Sort(v[0]).values; }, {Random({})}));
}

TEST(SortGradients, TopK) {
  for (bool largest : {false, true}) {
    EXPECT_TRUE(
        GradCheck([&](Inputs v) { return TopK(v[0], 2, 0, largest).values; },
                  {Random({4, 5})}));
  }
}

TEST(SortGradients, TiesAreCreditedInTheirOrder) {
  Variable x(Put<float>({2, 3, 3, 1}), true);
  const ValuesAndIndices top = TopK(x, 1);
  top.values.Backward(Put<float>({5}));
  EXPECT_EQ(top.indices.ToVector<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{0, 5, 0, 0}));
}

}  // namespace
}  // namespace baton::autograd
