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

TEST(LossGradients, CrossEntropyWithOptions) {
  const Tensor labels = Put<int64_t>({2, 0, -1, 1, 1, 3}, {2, 3});
  const Tensor weight = Random({5}, 0.5, 2);
  for (const Reduction reduction :
       {Reduction::kNone, Reduction::kSum, Reduction::kMean}) {
    for (const double smoothing : {0.0, 0.3}) {
      EXPECT_TRUE(GradCheck(
          [&](Inputs v) {
            return CrossEntropy(v[0], labels,
                                {.weight = weight.To(v[0].dtype()),
                                 .ignore_index = -1,
                                 .label_smoothing = smoothing,
                                 .reduction = reduction},
                                1);
          },
          {Random({2, 5, 3}, -3, 3)}));
    }
  }
}

TEST(LossGradients, CrossEntropyOfProbabilities) {
  const Tensor weight = Random({5}, 0.5, 2);
  EXPECT_TRUE(GradCheck(
      [&](Inputs v) {
        return CrossEntropy(
            v[0], v[1],
            {.weight = weight.To(v[0].dtype()), .label_smoothing = 0.2});
      },
      {Random({3, 5}, -3, 3), Random({3, 5}, 0, 1)}));
}

TEST(LossGradients, NllLoss) {
  const Tensor labels = Put<int64_t>({2, -100, 4});
  const Tensor weight = Random({5}, 0.5, 2);
  EXPECT_TRUE(GradCheck(
      [&](Inputs v) {
        return NllLoss(v[0], labels, {.weight = weight.To(v[0].dtype())});
      },
      {Random({3, 5}, -3, 0)}));
}

TEST(LossGradients, LossesOfDistances) {
  const Tensor x = Random({3, 4}, -3, 3), t = Random({4}, -3, 3);
  EXPECT_TRUE(GradCheck([](Inputs v) { return L1Loss(v[0], v[1]); }, {x, t}));
  EXPECT_TRUE(GradCheck(
      [](Inputs v) { return SmoothL1Loss(v[0], v[1], 0.7, Reduction::kSum); },
      {x, t}));
  EXPECT_TRUE(GradCheck(
      [](Inputs v) { return HuberLoss(v[0], v[1], 0.7, Reduction::kNone); },
      {x, t}));
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return MseLoss(v[0], v[1], Reduction::kSum); },
                {x, Random({3, 4}, -3, 3)}));
}

TEST(LossGradients, LossesOfProbabilities) {
  const Tensor p = Random({3, 4}, 0.1, 0.9), q = Random({3, 4}, 0.1, 0.9);
  const Tensor weight = Random({4}, 0.5, 2);
  EXPECT_TRUE(GradCheck(
      [&](Inputs v) {
        return BceLoss(v[0], v[1], {.weight = weight.To(v[0].dtype())});
      },
      {p, q}));
  EXPECT_TRUE(GradCheck(
      [&](Inputs v) {
        return BceWithLogitsLoss(v[0], v[1],
                                 {.pos_weight = weight.To(v[0].dtype())});
      },
      {Random({3, 4}, -3, 3), q}));
  for (const bool log_target : {false, true}) {
    EXPECT_TRUE(GradCheck(
        [&](Inputs v) { return KlDivLoss(v[0], v[1], log_target); }, {p, q}));
  }
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
