// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <functional>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "models/nn/activation.h"
#include "models/nn/batch_norm.h"
#include "models/nn/conv2d.h"
#include "models/nn/dropout.h"
#include "models/nn/embedding.h"
#include "models/nn/flatten.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "models/nn/pool.h"
#include "models/nn/sequential.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

Variable Random(const Shape& shape, uint64_t seed = 1) {
  Generator generator(seed);
  return Variable(RandNormal(shape, generator), true);
}

std::vector<float> Values(const Variable& x) {
  return x.tensor().ToVector<float>();
}

TEST(Linear, MultipliesByTheWeightAndAddsTheBias) {
  Generator generator(0);
  Linear linear(2, 3, generator);
  linear.weight().tensor().CopyFrom(
      Tensor::From<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  linear.bias()->tensor().CopyFrom(Tensor::From<float>({.5f, 0, -1}));
  const Variable x(Tensor::From<float>({1, 10}, {1, 2}));
  EXPECT_EQ(Values(linear.Forward(x)), std::vector<float>({21.5f, 43, 64}));
}

TEST(Linear, WorksWithoutABiasAndNamesWrongShapes) {
  Generator generator(0);
  Linear linear(2, 3, generator, {.bias = false});
  EXPECT_EQ(linear.bias(), nullptr);
  EXPECT_EQ(linear.StateDict().size(), 1U);
  EXPECT_EQ(linear.Forward(Random({4, 5, 2})).shape(), Shape({4, 5, 3}));
  EXPECT_THROW(linear.Forward(Random({4, 3})), Error);
  EXPECT_THROW(Linear(0, 3, generator), Error);
}

TEST(Conv2d, GivesTheShapeOfItsOptions) {
  Generator generator(0);
  Conv2d conv(4, 6,
              {.kernel = {3, 5},
               .stride = {2, 1},
               .padding = {1, 2},
               .groups = 2,
               .bias = false},
              generator);
  EXPECT_EQ(conv.weight().shape(), Shape({6, 2, 3, 5}));
  EXPECT_EQ(conv.bias(), nullptr);
  EXPECT_EQ(conv.Forward(Random({2, 4, 9, 7})).shape(), Shape({2, 6, 5, 7}));
  EXPECT_THROW(conv.Forward(Random({2, 3, 9, 7})), Error);
  EXPECT_THROW(Conv2d(3, 6, {.groups = 2}, generator), Error);
}

TEST(Conv2d, OneByOneIsALinearLayerOverChannels) {
  Generator generator(0);
  Conv2d conv(3, 2, {.kernel = {1, 1}}, generator);
  conv.weight().tensor().CopyFrom(
      Tensor::From<float>({1, 2, 3, -1, 0, 1}, {2, 3, 1, 1}));
  conv.bias()->tensor().Fill(10);
  const Variable x(Tensor::From<float>({1, 10, 100}, {1, 3, 1, 1}));
  EXPECT_EQ(Values(conv.Forward(x)), std::vector<float>({331, 109}));
}

TEST(BatchNorm2d, NormalisesByTheBatchAndTracksIt) {
  BatchNorm2d norm(2, {.momentum = 0.5});
  const Variable x(Tensor::From<float>({1, 3, 5, 7, 2, 2, 4, 4}, {2, 2, 2, 1}));
  // Channel 0 holds 1 3 2 2, channel 1 holds 5 7 4 4.
  const std::vector<float> y = Values(norm.Forward(x));
  EXPECT_NEAR(y[0], -1 / std::sqrt(0.5), 1e-4);
  EXPECT_NEAR(y[2], 0, 1e-5);
  const StateMap state = norm.StateDict();
  EXPECT_NEAR(state.at("running_mean").ToVector<float>()[1], 2.5, 1e-5);
  EXPECT_NEAR(state.at("running_var").ToVector<float>()[1], 0.5 + 0.5 * 2,
              1e-5);
  EXPECT_EQ(state.at("num_batches_tracked").Item(), 1);
}

TEST(BatchNorm2d, EvalUsesAndKeepsTheRunningStatistics) {
  BatchNorm2d norm(1);
  StateMap state = norm.StateDict();
  state.at("running_mean").Fill(3);
  state.at("running_var").Fill(4);
  norm.Eval();
  const Variable x(Tensor::From<float>({5, 1}, {1, 1, 1, 2}));
  const std::vector<float> y = Values(norm.Forward(x));
  EXPECT_NEAR(y[0], 1, 1e-4);
  EXPECT_NEAR(y[1], -1, 1e-4);
  EXPECT_EQ(state.at("running_mean").Item(), 3);
  EXPECT_EQ(state.at("num_batches_tracked").Item(), 0);
}

TEST(BatchNorm2d, FusedFormsEqualTheirParts) {
  for (const bool training : {true, false}) {
    BatchNorm2d fused(3);
    BatchNorm2d parts(3);
    fused.Train(training);
    parts.Train(training);
    const Variable x = Random({2, 3, 4, 4}, 1);
    const Variable residual = Random({2, 3, 4, 4}, 2);
    ReLU relu;
    const Tensor joint = fused.ForwardAddRelu(x, residual).tensor();
    const Tensor apart = relu.Forward(parts.Forward(x) + residual).tensor();
    EXPECT_TRUE(ops::AllClose(joint, apart, 1e-5, 1e-6)) << training;
    EXPECT_TRUE(ops::AllClose(fused.ForwardRelu(x).tensor(),
                              relu.Forward(parts.Forward(x)).tensor(), 1e-5,
                              1e-6))
        << training;
  }
}

TEST(BatchNorm2d, FusedGradientsEqualThoseOfTheParts) {
  BatchNorm2d fused(3);
  BatchNorm2d parts(3);
  const Variable x = Random({2, 3, 4, 4}, 1);
  const Variable residual = Random({2, 3, 4, 4}, 2);
  const Variable weights(Random({2, 3, 4, 4}, 3).tensor());
  const auto gradients = [&](const Variable& y, BatchNorm2d& norm) {
    for (Variable v : {x, residual}) v.ZeroGrad();
    autograd::Sum(y * weights).Backward();
    return std::vector<Tensor>{x.grad(), residual.grad(), norm.weight().grad(),
                               norm.bias().grad()};
  };
  ReLU relu;
  const auto a = gradients(fused.ForwardAddRelu(x, residual), fused);
  const auto b = gradients(relu.Forward(parts.Forward(x) + residual), parts);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(ops::AllClose(a[i], b[i], 1e-4, 1e-5)) << i;
}

TEST(Activation, LayersComputeTheirFunctions) {
  const Variable x(Tensor::From<float>({-1, 0, 2}));
  EXPECT_EQ(Values(ReLU().Forward(x)), std::vector<float>({0, 0, 2}));
  EXPECT_NEAR(Values(Sigmoid().Forward(x))[2], 0.880797, 1e-5);
  EXPECT_NEAR(Values(Tanh().Forward(x))[0], -0.761594, 1e-5);
  EXPECT_NEAR(Values(GELU().Forward(x))[0], -0.158655, 1e-5);
}

TEST(Pool, LayersPoolWindows) {
  const Variable x(Tensor::From<float>({1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 2, 4}));
  EXPECT_EQ(Values(MaxPool2d().Forward(x)), std::vector<float>({6, 8}));
  EXPECT_EQ(Values(AvgPool2d().Forward(x)), std::vector<float>({3.5, 5.5}));
  EXPECT_EQ(Values(AdaptiveAvgPool2d(1, 1).Forward(x)),
            std::vector<float>({4.5}));
  EXPECT_EQ(AdaptiveAvgPool2d(3, 3).Forward(Random({2, 5, 7, 8})).shape(),
            Shape({2, 5, 3, 3}));
}

TEST(Dropout, ZeroesAShareAndScalesTheRestWhileTraining) {
  Dropout dropout(0.25, 3);
  const std::vector<float> y =
      Values(dropout.Forward(Variable(Tensor::Ones({100, 100}))));
  int zeros = 0;
  for (const float v : y) {
    if (v == 0) {
      ++zeros;
    } else {
      EXPECT_FLOAT_EQ(v, 4.f / 3);
    }
  }
  EXPECT_NEAR(zeros, 2500, 200);
}

TEST(Dropout, DrawsAnewEachTimeAndEquallyForEqualSeeds) {
  const Variable x(Tensor::Ones({64}));
  Dropout a(0.5, 3);
  Dropout b(0.5, 3);
  const auto first = Values(a.Forward(x));
  EXPECT_EQ(first, Values(b.Forward(x)));
  EXPECT_NE(first, Values(a.Forward(x)));
}

TEST(Dropout, PassesOnInEvalModeAndRefusesSillyProbabilities) {
  Dropout dropout(0.5, 3);
  dropout.Eval();
  const Variable x(Tensor::Ones({64}));
  EXPECT_EQ(Values(dropout.Forward(x)), Values(x));
  EXPECT_THROW(Dropout(1.0, 0), Error);
  EXPECT_THROW(Dropout(-0.1, 0), Error);
}

TEST(Embedding, ThePaddingRowIsZeroAndStaysSo) {
  Generator generator(1);
  for (const int64_t padding : {int64_t{3}, int64_t{-2}}) {
    Embedding embedding(5, 2, generator, {.padding = padding});
    embedding.To(test::TestDevice());
    const Variable y = embedding.Forward(test::Put<int64_t>({3, 0, 3}));
    y.Backward(test::Put(Tensor::Ones({3, 2})));
    EXPECT_EQ(embedding.weight().grad().ToVector<float>(),
              std::vector<float>({1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
    const auto values = embedding.weight().tensor().ToVector<float>();
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i] == 0, i == 6 || i == 7) << i;
  }
  EXPECT_THROW(Embedding(5, 2, generator, {.padding = 5}), Error);
  EXPECT_THROW(Embedding(5, 2, generator, {.padding = -6}), Error);
}

TEST(Embedding, LooksUpRowsAndSumsTheirGradients) {
  Generator generator(0);
  Embedding embedding(5, 2, generator);
  const Variable index(Tensor::From<int64_t>({3, 1, 3}, {1, 3}));
  const Variable y = embedding.Forward(index);
  EXPECT_EQ(y.shape(), Shape({1, 3, 2}));
  const auto table = Values(embedding.weight());
  EXPECT_EQ(Values(y)[1], table[7]);
  autograd::Sum(y).Backward();
  EXPECT_EQ(embedding.weight().grad().ToVector<float>(),
            std::vector<float>({0, 0, 1, 1, 0, 0, 2, 2, 0, 0}));
  EXPECT_THROW(embedding.Forward(Variable(Tensor::From<int64_t>({5}))), Error);
}

TEST(Flatten, KeepsTheBatch) {
  EXPECT_EQ(Flatten().Forward(Random({2, 3, 4, 5})).shape(), Shape({2, 60}));
}

TEST(Sequential, RunsInOrderAndNamesByNumberUnlessTold) {
  Generator generator(0);
  Sequential layers;
  layers.Emplace<Linear>(4, 3, generator);
  layers.Emplace<ReLU>();
  layers.Add("head", std::make_shared<Linear>(3, 2, generator));
  EXPECT_EQ(layers.children()[1].name, "1");
  EXPECT_EQ(layers.StateDict().count("head.bias"), 1U);
  EXPECT_EQ(layers.Forward(Random({7, 4})).shape(), Shape({7, 2}));
}

TEST(Loss, CrossEntropyIsTheMeanNegativeLogLikelihood) {
  const Variable logits(Tensor::From<float>({0, 0, 0, std::log(3.f)}, {2, 2}));
  const Tensor labels = Tensor::From<int64_t>({0, 1});
  EXPECT_NEAR(CrossEntropy(logits, labels).tensor().Item(),
              (std::log(2.) + std::log(4. / 3)) / 2, 1e-5);
}

TEST(Loss, MseIsTheMeanOfSquares) {
  const Variable x(Tensor::From<float>({1, 2, 3, 4}, {2, 2}));
  EXPECT_NEAR(MseLoss(x, Tensor::Zeros({2, 2})).tensor().Item(), 7.5, 1e-5);
}

TEST(Loss, CountCorrectComparesMaximaWithLabels) {
  const Tensor logits =
      Tensor::From<float>({1, 2, 0, 5, 4, 3, 0, 0, 1}, {3, 3});
  EXPECT_EQ(CountCorrect(logits, Tensor::From<int64_t>({1, 0, 1})), 2);
  EXPECT_THROW(CountCorrect(logits, Tensor::From<int64_t>({1, 0})), Error);
}

}  // namespace
}  // namespace baton::nn
