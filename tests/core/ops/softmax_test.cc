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
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::Put;

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
              ::testing::ElementsAre(0, 1, 0));
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
              ::testing::ElementsAre(0.5f, 0.5f, 0.f));
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

TEST(Softmax, AnAxisOutOfRangeIsNamed) {
  EXPECT_EQ(test::ErrorOf([] {
              Softmax(Put(Tensor::Ones({2, 3})), 2);
            }),
            "[softmax] axis 2 is out of range for rank 2");
}

}  // namespace
}  // namespace baton::ops
