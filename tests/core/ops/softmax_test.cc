// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using test::TestDevice;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Softmax, MatchesTheDefinitionOnEveryAxis) {
  Generator generator(1);
  const Tensor x = Put(RandNormal({3, 70, 5}, generator, DType::kF64));
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

// Rows of a few threads, of a warp and of a block; whole packs and not.
TEST(Softmax, AgreesWithF64InRowsOfAnyWidth) {
  Generator generator(4);
  for (const Shape& shape :
       {Shape({3000, 7}), Shape({500, 64}), Shape({40, 1000}), Shape({3, 5003}),
        Shape({2, 40'000}), Shape({5, 1})}) {
    const Tensor x = Put(RandNormal(shape, generator, DType::kF64));
    const Tensor dy = Put(RandNormal(shape, generator, DType::kF64));
    const Tensor exp = Exp(x);
    const Tensor want = Div(exp, Sum(exp, {1}, true));
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      const double rtol = dtype == DType::kF64   ? 1e-9
                          : dtype == DType::kF32 ? 1e-4
                                                 : 3e-2;
      const double atol = dtype == DType::kF64 ? 1e-12 : 10 * rtol * rtol;
      const Tensor y = Softmax(x.To(dtype), 1);
      const Tensor log_y = LogSoftmax(x.To(dtype), 1);
      EXPECT_TRUE(AllClose(y.To(DType::kF64), want, rtol, atol))
          << Name(dtype) << shape.ToString();
      EXPECT_TRUE(AllClose(log_y.To(DType::kF64), Log(want), rtol, rtol))
          << Name(dtype) << shape.ToString();
      const Tensor dot = Sum(Mul(dy, want), {1}, true);
      EXPECT_TRUE(AllClose(SoftmaxBackward(dy.To(dtype), y, 1).To(DType::kF64),
                           Mul(want, Sub(dy, dot)), 2 * rtol, 2 * atol))
          << Name(dtype) << shape.ToString();
    }
  }
}

TEST(Softmax, MaskedElementsCountNothing) {
  const float none = -INFINITY;
  const Tensor x = Put<float>({none, 1, none, 1, none, none}, {2, 3});
  const auto y = Softmax(x, 1).ToVector<float>();
  EXPECT_THAT(std::vector<float>(y.begin(), y.begin() + 3),
              testing::ElementsAre(0, 1, 0));
  EXPECT_EQ(y[3], 1);
  const Tensor empty = Put<float>({none, none}, {1, 2});
  EXPECT_TRUE(std::isnan(Softmax(empty, 1).ToVector<float>()[0]));
  const Tensor broken = Put<float>({NAN, 1, 2}, {1, 3});
  for (float value : LogSoftmax(broken, 1).ToVector<float>()) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  const Tensor x = Put<float>({1000, 1000, -1000}, {1, 3});
  EXPECT_THAT(Softmax(x, 1).ToVector<float>(),
              testing::ElementsAre(0.5f, 0.5f, 0.f));
  EXPECT_NEAR(LogSoftmax(x, 1).ToVector<float>()[2], -2000.693, 1e-3);
}

TEST(Softmax, GradientsFollowTheJacobian) {
  Generator generator(2);
  const Tensor x = Put(RandNormal({4, 9}, generator, DType::kF64));
  const Tensor dy = Put(RandNormal({4, 9}, generator, DType::kF64));
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
  const Tensor logits = Put<float>({1, 2, 3, 0, 0, 0}, {2, 3});
  const Tensor labels = Put<int64_t>({2, 0});
  const auto [loss, log_softmax] = CrossEntropy(logits, labels);
  EXPECT_NEAR(loss.Item(), (0.40760596 + std::log(3.0)) / 2, 1e-6);
  const auto dx =
      CrossEntropyBackward(Put(Tensor::Scalar(2)), log_softmax, labels)
          .ToVector<float>();
  EXPECT_NEAR(dx[2], 0.66524096 - 1, 1e-6);
  EXPECT_NEAR(dx[3], 1 / 3.0 - 1, 1e-6);
  EXPECT_NEAR(dx[4], 1 / 3.0, 1e-6);
}

// A GPU's labels are not read back: what is wrong shows in the loss.
TEST(CrossEntropy, LabelsOutOfRangeThrowOrGiveNaN) {
  const Tensor logits = Put(Tensor::Ones({2, 3}));
  const Tensor high = Put<int64_t>({0, 3}), low = Put<int64_t>({-1, 0});
  if (TestDevice().is_cpu()) {
    EXPECT_EQ(ErrorOf([&] { CrossEntropy(logits, high); }),
              "[cross_entropy] label 3 at 1 is outside [0, 3)");
    EXPECT_THAT(ErrorOf([&] { CrossEntropy(logits, low); }),
                HasSubstr("label -1"));
    return;
  }
  for (const Tensor& labels : {high, low}) {
    const auto [loss, log_softmax] = CrossEntropy(logits, labels);
    EXPECT_TRUE(std::isnan(loss.Item()));
    const auto dx =
        CrossEntropyBackward(Put(Tensor::Scalar(1)), log_softmax, labels)
            .ToVector<float>();
    const size_t bad = labels.Select(0, 0).Item() < 0 ? 0 : 3;
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(std::isnan(dx[i]), i >= bad && i < bad + 3) << i;
    }
  }
}

TEST(CrossEntropy, WrongArgumentsAreNamed) {
  const Tensor logits = Put(Tensor::Ones({2, 3}));
  EXPECT_THAT(ErrorOf([&] { CrossEntropy(logits, Put(Tensor::Arange(3))); }),
              StartsWith("[cross_entropy] expected labels [2]"));
  EXPECT_THAT(ErrorOf([&] {
                CrossEntropy(logits, Put<float>({0, 1}));
              }),
              StartsWith("[cross_entropy]"));
  EXPECT_THAT(ErrorOf([&] { Softmax(logits, 2); }), StartsWith("[softmax]"));
}

TEST(CrossEntropy, AgreesWithItsPartsInEveryDType) {
  Generator generator(6);
  const Tensor wide = Put(RandNormal({120, 1000}, generator, DType::kF64));
  const Tensor labels = Put(RandInt(0, 1000, {120}, generator));
  const Tensor marks = OneHot(labels, 1000).To(DType::kF64);
  const Tensor log_y = LogSoftmax(wide, 1);
  const double want = -Sum(Mul(log_y, marks)).Item() / 120;
  const Tensor gradient = MulScalar(Sub(Exp(log_y), marks), 1.0 / 120);
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    const double rtol = dtype == DType::kF64   ? 1e-9
                        : dtype == DType::kF32 ? 1e-5
                                               : 3e-2;
    const auto [loss, log_softmax] = CrossEntropy(wide.To(dtype), labels);
    EXPECT_NEAR(loss.Item(), want, rtol * want) << Name(dtype);
    const Tensor one = Put(Tensor::Scalar(1, dtype));
    EXPECT_TRUE(
        AllClose(CrossEntropyBackward(one, log_softmax, labels).To(DType::kF64),
                 gradient, 2 * rtol, 1e-3 * rtol))
        << Name(dtype);
  }
}

TEST(MseLoss, AgreesWithItsParts) {
  Generator generator(3);
  const Tensor x = Put(RandNormal({300, 501}, generator));
  const Tensor t = Put(RandNormal({300, 501}, generator));
  const Tensor difference = Sub(x, t);
  const double want = Mean(Mul(difference, difference)).Item();
  EXPECT_NEAR(MseLoss(x, t).Item(), want, 1e-5);
  EXPECT_NEAR(MseLoss(x.Transpose(0, 1), t.Transpose(0, 1)).Item(), want, 1e-5);
  const Tensor dx = MseLossBackward(Put(Tensor::Scalar(3)), x, t);
  EXPECT_TRUE(
      AllClose(dx, MulScalar(difference, 6.0 / (300 * 501)), 1e-5, 1e-10));
  EXPECT_THAT(ErrorOf([&] {
                MseLoss(x, Put(Tensor::Ones({300, 1})));
              }),
              StartsWith("[mse_loss]"));
}

}  // namespace
}  // namespace baton::ops
