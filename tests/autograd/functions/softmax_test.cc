// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/softmax.h"

#include "tests/support/gradcheck.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

TEST(SoftmaxGradients, Softmax) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Softmax(v[0], -1); },
                        {Random({3, 5}, -3, 3)}));
}

TEST(SoftmaxGradients, SoftmaxOverAMiddleAxis) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Softmax(v[0], 1); },
                        {Random({2, 4, 3}, -3, 3)}));
}

TEST(SoftmaxGradients, LogSoftmax) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return LogSoftmax(v[0], 1); },
                        {Random({3, 5}, -3, 3)}));
}

}  // namespace
}  // namespace baton::autograd
