// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/init.h"

#include <algorithm>
#include <cmath>

#include "core/status.h"
#include "gtest/gtest.h"
#include "models/nn/conv2d.h"
#include "models/nn/embedding.h"
#include "models/nn/linear.h"

namespace baton::nn {
namespace {

struct Moments {
  double mean = 0;
  double stddev = 0;
  double largest = 0;  // absolute
};

Moments MomentsOf(const Tensor& tensor) {
  Moments m;
  double squares = 0;
  const std::vector<float> values = tensor.ToVector<float>();
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    squares += v * v / static_cast<double>(values.size());
    m.largest = std::max(m.largest, std::abs(v));
  }
  m.stddev = std::sqrt(squares - m.mean * m.mean);
  return m;
}

void ExpectUniform(const Tensor& tensor, double bound) {
  const Moments m = MomentsOf(tensor);
  EXPECT_LE(m.largest, bound * (1 + 1e-6));
  EXPECT_GT(m.largest, bound * 0.98);
  EXPECT_NEAR(m.mean, 0, bound * 0.05);
  EXPECT_NEAR(m.stddev, bound / std::sqrt(3.0), bound * 0.03);
}

void ExpectNormal(const Tensor& tensor, double stddev) {
  const Moments m = MomentsOf(tensor);
  EXPECT_NEAR(m.mean, 0, stddev * 0.06);
  EXPECT_NEAR(m.stddev, stddev, stddev * 0.05);
  EXPECT_GT(m.largest, stddev * 2.5);
}

const Shape kWeight = {32, 16, 3, 3};  // fan-in 144, fan-out 288

TEST(Init, KaimingFollowsFanAndSlope) {
  Generator generator(1);
  const Tensor w = Tensor::Empty(kWeight);
  KaimingUniform(w, {}, generator);
  ExpectUniform(w, std::sqrt(6.0 / 144));
  KaimingUniform(w, {.fan = Fan::kOut, .negative_slope = 2}, generator);
  ExpectUniform(w, std::sqrt(6.0 / 5 / 288));
  KaimingNormal(w, {}, generator);
  ExpectNormal(w, std::sqrt(2.0 / 144));
  KaimingNormal(w, {.fan = Fan::kOut}, generator);
  ExpectNormal(w, std::sqrt(2.0 / 288));
}

TEST(Init, XavierBalancesBothFans) {
  Generator generator(1);
  const Tensor w = Tensor::Empty(kWeight);
  XavierUniform(w, 1, generator);
  ExpectUniform(w, std::sqrt(6.0 / (144 + 288)));
  XavierNormal(w, 2, generator);
  ExpectNormal(w, 2 * std::sqrt(2.0 / (144 + 288)));
}

TEST(Init, LayersStartAsPyTorchsDo) {
  Generator generator(1);
  const Conv2d conv(16, 512, {.groups = 2}, generator);
  ExpectUniform(conv.weight().tensor(), 1 / std::sqrt(8.0 * 9));
  ExpectUniform(conv.bias()->tensor(), 1 / std::sqrt(8.0 * 9));
  const Conv2d residual(16, 32, {.init = ConvInit::kKaimingFanOut}, generator);
  ExpectNormal(residual.weight().tensor(), std::sqrt(2.0 / 288));
  EXPECT_EQ(residual.bias()->tensor().ToVector<float>()[31], 0);
  const Linear linear(64, 1024, generator);
  ExpectUniform(linear.weight().tensor(), 1.0 / 8);
  ExpectUniform(linear.bias()->tensor(), 1.0 / 8);
  const Embedding embedding(100, 50, generator);
  ExpectNormal(embedding.weight().tensor(), 1);
}

TEST(Init, EqualSeedsGiveEqualWeights) {
  Generator a(5);
  Generator b(5);
  Generator c(6);
  const auto weights = [](Generator& generator) {
    return Linear(8, 8, generator).weight().tensor().ToVector<float>();
  };
  const auto first = weights(a);
  EXPECT_EQ(first, weights(b));
  EXPECT_NE(first, weights(a));
  EXPECT_NE(first, weights(c));
}

TEST(Init, NeedsARankOfTwo) {
  Generator generator(1);
  EXPECT_THROW(KaimingUniform(Tensor::Empty({4}), {}, generator), Error);
  EXPECT_THROW(XavierNormal(Tensor::Empty({4}), 1, generator), Error);
}

}  // namespace
}  // namespace baton::nn
