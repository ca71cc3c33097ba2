// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/scan.h"

#include "tests/support/gradcheck.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

TEST(ScanGradients, CumSum) {
  for (int axis : {0, 1, -1}) {
    EXPECT_TRUE(GradCheck([axis](Inputs v) { return CumSum(v[0], axis); },
                          {Random({3, 4, 5})}));
  }
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return CumSum(v[0], 0); }, {Random({})}));
}

}  // namespace
}  // namespace baton::autograd
