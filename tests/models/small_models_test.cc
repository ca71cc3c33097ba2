// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/arithmetic.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "models/lenet.h"
#include "models/mlp.h"
#include "models/nn/loss.h"

namespace baton::models {
namespace {

Tensor Random(const Shape& shape, uint64_t seed) {
  Generator generator(seed);
  return RandNormal(shape, generator);
}

// The last of `steps` losses over the first, on one batch.
double LossRatio(nn::Module& model, const Tensor& x, const Tensor& labels,
                 double rate, int steps) {
  double first = 0;
  double last = 0;
  for (int step = 0; step < steps; ++step) {
    model.ZeroGrad();
    const Variable loss = nn::CrossEntropy(model.Forward(x), labels);
    loss.Backward();
    for (const Variable& p : model.Parameters())
      ops::AddInto(p.tensor(), p.grad(), -rate);
    last = loss.tensor().Item();
    if (step == 0) first = last;
  }
  return last / first;
}

TEST(LeNet, LearnsABatch) {
  Generator generator(1);
  LeNet model(generator);
  EXPECT_EQ(model.NumParameters(), 61'706);
  const Tensor x = Random({8, 1, 28, 28}, 2);
  const Tensor labels = Tensor::From<int64_t>({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_LT(LossRatio(model, x, labels, 0.2, 60), 0.5);
  EXPECT_THROW(model.Forward(Random({8, 3, 28, 28}, 2)), Error);
  EXPECT_THROW(model.Forward(Random({8, 1, 32, 32}, 2)), Error);
}

TEST(Mlp, LearnsABatchOfImages) {
  Generator generator(1);
  Mlp model({.widths = {3 * 4 * 4, 32, 16, 4}, .dropout = 0.1}, generator);
  const Tensor x = Random({8, 3, 4, 4}, 2);
  const Tensor labels = Tensor::From<int64_t>({0, 1, 2, 3, 0, 1, 2, 3});
  EXPECT_LT(LossRatio(model, x, labels, 0.2, 60), 0.5);
  EXPECT_EQ(model.StateDict().count("layers.0.weight"), 1U);
}

TEST(Mlp, NeedsTwoWidthsAndInputsThatFit) {
  Generator generator(1);
  EXPECT_THROW(Mlp({.widths = {3}}, generator), Error);
  Mlp model({.widths = {4, 2}}, generator);
  EXPECT_EQ(model.Forward(Random({3, 4}, 1)).shape(), Shape({3, 2}));
  EXPECT_THROW(model.Forward(Random({3, 5}, 1)), Error);
}

}  // namespace
}  // namespace baton::models
