// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/loss.h"

#include <cmath>

#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(LossGradients, CrossEntropy) {
  const Tensor labels = Put<int64_t>({2, 0, 4});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return CrossEntropy(v[0], labels); },
                        {Random({3, 5}, -3, 3)}));
}

TEST(LossGradients, CrossEntropyOverTokens) {
  const Tensor labels = Put<int64_t>({2, 0, 4, 1, 1, 3}, {2, 3});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return CrossEntropy(v[0], labels); },
                        {Random({2, 3, 5}, -3, 3)}));
}

TEST(LossGradients, MseLoss) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return MseLoss(v[0], v[1]); },
                        {Random({3, 4}), Random({3, 4})}));
}

TEST(LossGradients, CrossEntropyRefusesALabelOutOfRange) {
  const Variable logits(Put(Tensor::Zeros({1, 3})), true);
  const Tensor label = Put<int64_t>({3});
  if (test::TestDevice().is_cpu()) {
    EXPECT_THROW(CrossEntropy(logits, label), Error);
  } else {
    EXPECT_TRUE(std::isnan(CrossEntropy(logits, label).tensor().Item()));
  }
}

}  // namespace
}  // namespace baton::autograd
