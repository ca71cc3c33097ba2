// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/arithmetic.h"

#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(ArithmeticGradients, Add) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Add(v[0], v[1]); },
                        {Random({2, 3}), Random({2, 3})}));
}

TEST(ArithmeticGradients, AddBroadcasts) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Add(v[0], v[1]); },
                        {Random({2, 1, 3}), Random({4, 1})}));
}

TEST(ArithmeticGradients, AddOfAValueToItself) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Add(v[0], v[0]); }, {Random({2, 3})}));
}

TEST(ArithmeticGradients, Sub) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Sub(v[0], v[1]); },
                        {Random({3}), Random({2, 3})}));
}

TEST(ArithmeticGradients, Mul) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Mul(v[0], v[1]); },
                        {Random({2, 3}), Random({3})}));
}

TEST(ArithmeticGradients, Div) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Div(v[0], v[1]); },
                        {Random({3}), Random({2, 3}, 0.5, 2)}));
}

TEST(ArithmeticGradients, Maximum) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Maximum(v[0], v[1]); },
                        {Random({4, 3}), Random({3})}));
}

TEST(ArithmeticGradients, Minimum) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Minimum(v[0], v[1]); },
                        {Random({4, 3}), Random({4, 1})}));
}

TEST(ArithmeticGradients, MaximumSharesTheGradientOfEqualSides) {
  Variable a(Put<float>({1, 2}), true);
  Variable b(Put<float>({1, 3}), true);
  Maximum(a, b).Backward(Put<float>({4, 8}));
  EXPECT_EQ(a.grad().ToVector<float>(), (std::vector<float>{2, 0}));
  EXPECT_EQ(b.grad().ToVector<float>(), (std::vector<float>{2, 8}));
}

TEST(ArithmeticGradients, AddScalar) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return AddScalar(v[0], 3); }, {Random({2, 3})}));
}

TEST(ArithmeticGradients, MulScalar) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return MulScalar(v[0], -3); },
                        {Random({2, 3})}));
}

TEST(ArithmeticGradients, Neg) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Neg(v[0]); }, {Random({4})}));
}

TEST(ArithmeticGradients, Abs) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Abs(v[0]); }, {Random({9})}));
}

TEST(ArithmeticGradients, AbsIsFlatAtZero) {
  Variable x(Put<float>({0, -2}), true);
  Abs(x).Backward(Put<float>({5, 5}));
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{0, -5}));
}

TEST(ArithmeticGradients, Exp) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Exp(v[0]); }, {Random({5})}));
}

TEST(ArithmeticGradients, Log) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Log(v[0]); }, {Random({5}, 0.5, 2)}));
}

TEST(ArithmeticGradients, Sqrt) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Sqrt(v[0]); }, {Random({5}, 0.5, 2)}));
}

TEST(ArithmeticGradients, PowScalar) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return PowScalar(v[0], 2.5); },
                        {Random({5}, 0.5, 2)}));
}

TEST(ArithmeticGradients, PowScalarByZeroIsFlatEvenAtZero) {
  Variable x(Put<float>({0, 2}), true);
  PowScalar(x, 0).Backward(Put<float>({1, 1}));
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{0, 0}));
}

TEST(ArithmeticGradients, Pow) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Pow(v[0], v[1]); },
                        {Random({2, 3}, 0.5, 2), Random({4, 1, 3}, -2, 2)}));
}

TEST(ArithmeticGradients, SinAndCos) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Sin(v[0]); }, {Random({9}, -7, 7)}));
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Cos(v[0]); }, {Random({9}, -7, 7)}));
}

TEST(ArithmeticGradients, MaskedFill) {
  const Tensor mask = Put<bool>({true, false, true});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return MaskedFill(v[0], mask, 2); },
                        {Random({2, 3})}));
  EXPECT_TRUE(GradCheck([&](Inputs v) { return MaskedFill(v[0], mask, 2); },
                        {Random({2, 1})}));
}

TEST(ArithmeticGradients, Clamp) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Clamp(v[0], -0.4, 0.5); },
                        {Random({20})}));
}

TEST(ArithmeticGradients, Where) {
  const Tensor condition = Put<bool>({true, false, true});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return Where(condition, v[0], v[1]); },
                        {Random({2, 3}), Random({2, 1})}));
}

TEST(ArithmeticGradients, Operators) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return 2.0 * (v[0] + v[1]) / v[1] - (1.0 - v[0]) * v[1] +
               (-v[0] - 3.0) * 2.0 + (1.0 + v[0] / 4.0) + (v[1] + 1.0);
      },
      {Random({3}), Random({3}, 1, 2)}));
}

}  // namespace
}  // namespace baton::autograd
