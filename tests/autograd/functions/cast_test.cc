// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/cast.h"

#include "autograd/functions/arithmetic.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;

TEST(CastGradients, RoundTrip) {
  EXPECT_TRUE(GradCheck(
      [](const std::vector<Variable>& v) {
        return Cast(MulScalar(Cast(v[0], DType::kF64), 3), v[0].dtype());
      },
      {Random({5})}));
}

TEST(CastGradients, TheGradientHasTheInputsDType) {
  Variable x(Put<float>({1, 2}), true);
  Cast(x, DType::kBF16).Backward(Put<float>({3, 4}).To(DType::kBF16));
  EXPECT_EQ(x.grad().dtype(), DType::kF32);
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{3, 4}));
}

TEST(CastGradients, TheSameDTypeIsTheSameValue) {
  Variable x(Put<float>({1}), true);
  EXPECT_EQ(Cast(x, DType::kF32).id(), x.id());
}

}  // namespace
}  // namespace baton::autograd
