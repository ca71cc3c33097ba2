// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/gradient_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using ::testing::Each;

Gradient Of(const Variable& leaf, double value) {
  return Gradient(
      Tensor::Full(leaf.shape(), value, {.device = test::TestDevice()}));
}

// Small leaves, whose gradients the threads of one launch would add at a time.
TEST(GradientSums, CountsEachOfALeafsGradientsOfAMicroBatch) {
  const Variable tied(test::Put(Tensor::Zeros({13, 8})), true);
  const Variable other(test::Put(Tensor::Zeros({7, 8})), true);
  GradientSums sums;
  constexpr int kMicroBatches = 5;
  for (int i = 0; i < kMicroBatches; ++i) {
    sums.Add({{tied, Of(tied, 1)},
              {other, Of(other, 10)},
              {tied, Of(tied, 2)},
              {tied, Of(tied, 4)}},
             /*last=*/false);
  }
  EXPECT_THAT(sums.TakeOf(tied).Dense().ToVector<float>(),
              Each(7 * kMicroBatches));
  EXPECT_THAT(sums.TakeOf(other).Dense().ToVector<float>(),
              Each(10 * kMicroBatches));
  EXPECT_FALSE(sums.TakeOf(tied).defined());
}

}  // namespace
}  // namespace baton::dist
