// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/loss.h"

#include "tests/support/gradcheck.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

TEST(LossGradients, CrossEntropy) {
  const Tensor labels = Tensor::From<int64_t>({2, 0, 4});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return CrossEntropy(v[0], labels); },
                        {Random({3, 5}, -3, 3)}));
}

TEST(LossGradients, MseLoss) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return MseLoss(v[0], v[1]); },
                        {Random({3, 4}), Random({3, 4})}));
}

TEST(LossGradients, CrossEntropyNamesALabelOutOfRange) {
  const Variable logits(Tensor::Zeros({1, 3}), true);
  EXPECT_THROW(CrossEntropy(logits, Tensor::From<int64_t>({3})), Error);
}

}  // namespace
}  // namespace baton::autograd
