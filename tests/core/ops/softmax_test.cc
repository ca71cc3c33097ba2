// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "tests/support/error_of.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Softmax, MatchesTheDefinitionOnEveryAxis) {
  Generator generator(1);
  const Tensor x = RandNormal({3, 70, 5}, generator, DType::kF64);
  for (int axis = -3; axis < 3; ++axis) {
    const Tensor exp = Exp(x);
    const Tensor want = Div(exp, Sum(exp, {axis}, true));
    EXPECT_TRUE(AllClose(Softmax(x, axis), want)) << axis;
    EXPECT_TRUE(AllClose(LogSoftmax(x, axis), Log(want))) << axis;
    EXPECT_TRUE(
        AllClose(Softmax(x.To(DType::kF32), axis), want.To(DType::kF32), 1e-5));
    EXPECT_TRUE(AllClose(Softmax(x.To(DType::kBF16), axis),
                         want.To(DType::kBF16), 0.05, 1e-3));
  }
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  const Tensor x = Tensor::From<float>({1000, 1000, -1000}, {1, 3});
  EXPECT_THAT(Softmax(x, 1).ToVector<float>(),
              testing::ElementsAre(0.5f, 0.5f, 0.f));
  EXPECT_NEAR(LogSoftmax(x, 1).ToVector<float>()[2], -2000.693, 1e-3);
}

TEST(Softmax, GradientsFollowTheJacobian) {
  Generator generator(2);
  const Tensor x = RandNormal({4, 9}, generator, DType::kF64);
  const Tensor dy = RandNormal({4, 9}, generator, DType::kF64);
  for (int axis : {0, 1}) {
    const Tensor y = Softmax(x, axis);
    const Tensor dot = Sum(Mul(dy, y), {axis}, true);
    EXPECT_TRUE(AllClose(SoftmaxBackward(dy, y, axis), Mul(y, Sub(dy, dot))));
    const Tensor want = Sub(dy, Mul(y, Sum(dy, {axis}, true)));
    EXPECT_TRUE(
        AllClose(LogSoftmaxBackward(dy, LogSoftmax(x, axis), axis), want));
  }
}

TEST(CrossEntropy, IsTheMeanNegativeLogLikelihood) {
  const Tensor logits = Tensor::From<float>({1, 2, 3, 0, 0, 0}, {2, 3});
  const Tensor labels = Tensor::From<int64_t>({2, 0});
  const auto [loss, log_softmax] = CrossEntropy(logits, labels);
  EXPECT_NEAR(loss.Item(), (0.40760596 + std::log(3.0)) / 2, 1e-6);
  const auto dx = CrossEntropyBackward(Tensor::Scalar(2), log_softmax, labels)
                      .ToVector<float>();
  EXPECT_NEAR(dx[2], 0.66524096 - 1, 1e-6);
  EXPECT_NEAR(dx[3], 1 / 3.0 - 1, 1e-6);
  EXPECT_NEAR(dx[4], 1 / 3.0, 1e-6);
}

TEST(CrossEntropy, WrongLabelsAreNamed) {
  const Tensor logits = Tensor::Ones({2, 3});
  EXPECT_EQ(ErrorOf([&] {
              CrossEntropy(logits, Tensor::From<int64_t>({0, 3}));
            }),
            "[cross_entropy] label 3 at 1 is outside [0, 3)");
  EXPECT_THAT(ErrorOf([&] {
                CrossEntropy(logits, Tensor::From<int64_t>({-1, 0}));
              }),
              HasSubstr("label -1"));
  EXPECT_THAT(ErrorOf([&] { CrossEntropy(logits, Tensor::Arange(3)); }),
              StartsWith("[cross_entropy] expected labels [2]"));
  EXPECT_THAT(ErrorOf([&] {
                CrossEntropy(logits, Tensor::From<float>({0, 1}));
              }),
              StartsWith("[cross_entropy]"));
  EXPECT_THAT(ErrorOf([&] { Softmax(logits, 2); }), StartsWith("[softmax]"));
}

TEST(MseLoss, AgreesWithItsParts) {
  Generator generator(3);
  const Tensor x = RandNormal({300, 501}, generator);
  const Tensor t = RandNormal({300, 501}, generator);
  const Tensor difference = Sub(x, t);
  const double want = Mean(Mul(difference, difference)).Item();
  EXPECT_NEAR(MseLoss(x, t).Item(), want, 1e-5);
  EXPECT_NEAR(MseLoss(x.Transpose(0, 1), t.Transpose(0, 1)).Item(), want, 1e-5);
  const Tensor dx = MseLossBackward(Tensor::Scalar(3), x, t);
  EXPECT_TRUE(
      AllClose(dx, MulScalar(difference, 6.0 / (300 * 501)), 1e-5, 1e-10));
  EXPECT_THAT(ErrorOf([&] {
                MseLoss(x, Tensor::Ones({300, 1}));
              }),
              StartsWith("[mse_loss]"));
}

}  // namespace
}  // namespace baton::ops
