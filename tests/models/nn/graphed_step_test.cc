// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/graphed_step.h"

#include <gtest/gtest.h>

#include "autograd/functions/cast.h"
#include "core/ops/arithmetic.h"
#include "models/nn/activation.h"
#include "models/nn/batch_norm.h"
#include "models/nn/conv2d.h"
#include "models/nn/dropout.h"
#include "models/nn/flatten.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "models/nn/sequential.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using test::Put;
using test::TestDevice;

std::shared_ptr<Sequential> SmallNet() {
  Generator generator(3);
  auto net = std::make_shared<Sequential>();
  net->Emplace<Conv2d>(2, 4, Conv2dOptions{.kernel = {3, 3}}, generator);
  net->Emplace<BatchNorm2d>(4);
  net->Emplace<ReLU>();
  net->Emplace<Flatten>();
  net->Emplace<Linear>(4 * 4 * 4, 3, generator);
  net->To(TestDevice());
  return net;
}

struct Batch {
  Tensor images, labels;
};

Batch BatchOf(int64_t rows, uint64_t seed) {
  Generator generator(seed);
  return {Put(RandNormal({rows, 2, 6, 6}, generator)),
          Put(RandInt(0, 3, {rows}, generator))};
}

// Forward, backward and a plain gradient step.
std::vector<Tensor> TrainOn(Sequential& net, const std::vector<Tensor>& batch) {
  const Variable loss = CrossEntropy(net.Forward(batch[0]), batch[1]);
  loss.Backward();
  for (const Variable& p : net.Parameters())
    ops::AddInto(p.tensor(), p.grad(), -0.1);
  return {loss.tensor()};
}

GraphedStep StepOf(const std::shared_ptr<Sequential>& net,
                   const RecordingOptions& options) {
  return GraphedStep(
      [net](const std::vector<Tensor>& batch) { return TrainOn(*net, batch); },
      {TestDevice()}, net->Parameters(), options);
}

TEST(GraphedStep, TrainsAsTheFunctionDoes) {
  const auto plain = SmallNet(), recorded = SmallNet();
  GraphedStep step = StepOf(recorded, {.warm_up = 2});
  for (uint64_t i = 0; i < 8; ++i) {
    // Every third batch is smaller and runs as it is.
    const Batch batch = BatchOf(i % 3 == 2 ? 4 : 6, i);
    plain->ZeroGrad();
    const Tensor expected = TrainOn(*plain, {batch.images, batch.labels})[0];
    const Tensor loss = step.Run({batch.images, batch.labels})[0];
    EXPECT_NEAR(loss.Item(), expected.Item(), 1e-4) << i;
    const auto left = plain->Parameters(), right = recorded->Parameters();
    for (size_t p = 0; p < left.size(); ++p) {
      EXPECT_TRUE(ops::AllClose(left[p].grad(), right[p].grad(), 1e-3, 1e-5))
          << "step " << i << ", parameter " << p;
      EXPECT_TRUE(
          ops::AllClose(left[p].tensor(), right[p].tensor(), 1e-3, 1e-5))
          << "step " << i << ", parameter " << p;
    }
  }
  EXPECT_EQ(step.replays(), TestDevice().is_cuda() ? 4 : 0);
  EXPECT_EQ(step.kernels() > 10, TestDevice().is_cuda());
  for (const auto& buffer : recorded->NamedBuffers()) {
    if (buffer.name == "1.num_batches_tracked") {
      EXPECT_EQ(buffer.value.Item(), 8);
    }
  }
}

// Against a plain loop that does the same.
TEST(GraphedStep, SeesLoadedStatesAndMovedWeights) {
  const auto plain = SmallNet(), recorded = SmallNet();
  std::vector<std::unique_ptr<optim::Sgd>> optimizers;
  const auto step_of = [&](const std::shared_ptr<Sequential>& net) {
    net->LowerPrecision(DType::kBF16);
    optimizers.push_back(std::make_unique<optim::Sgd>(
        net->Parameters(), optim::SgdOptions{.lr = 0.01, .momentum = 0.9}));
    return [net, sgd = optimizers.back().get()](
               const std::vector<Tensor>& batch) -> std::vector<Tensor> {
      const Variable loss = CrossEntropy(
          autograd::Cast(
              net->Forward(batch[0].To(net->Parameters()[0].dtype())),
              DType::kF32),
          batch[1]);
      loss.Backward();
      sgd->Step();
      return {loss.tensor()};
    };
  };
  const auto expected = step_of(plain);
  GraphedStep step(step_of(recorded), {TestDevice()}, recorded->Parameters(),
                   {.warm_up = 2});
  for (uint64_t i = 0; i < 16; ++i) {
    if (i == 5) {
      const StateMap other = SmallNet()->StateDict();
      for (const auto& net : {plain, recorded})
        ASSERT_TRUE(net->LoadStateDict(other).ok());
    }
    if (i == 10) {
      for (const auto& net : {plain, recorded}) net->To(DType::kF32);
    }
    const Batch batch = BatchOf(6, i);
    plain->ZeroGrad();
    const Tensor loss = expected({batch.images, batch.labels})[0];
    EXPECT_NEAR(step.Run({batch.images, batch.labels})[0].Item(), loss.Item(),
                2e-2)
        << i;
    const auto left = plain->Parameters(), right = recorded->Parameters();
    for (size_t p = 0; p < left.size(); ++p) {
      EXPECT_TRUE(
          ops::AllClose(left[p].tensor(), right[p].tensor(), 2e-2, 2e-2))
          << "step " << i << ", parameter " << p;
    }
  }
  EXPECT_EQ(step.replays(), TestDevice().is_cuda() ? 8 + 4 : 0);
}

TEST(GraphedStep, RandomNumbersDifferFromReplayToReplay) {
  Dropout dropout(0.5, 1);
  GraphedStep step(
      [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
        return {dropout.Forward(x[0]).tensor()};
      },
      {TestDevice()}, {}, {.warm_up = 1});
  const Tensor ones = Tensor::Ones({64}, {.device = TestDevice()});
  std::vector<std::vector<float>> seen;
  for (int i = 0; i < 4; ++i) {
    seen.push_back(step.Run({ones})[0].ToVector<float>());
    for (size_t j = 0; j + 1 < seen.size(); ++j)
      EXPECT_NE(seen[j], seen.back());
  }
}

TEST(GraphedStep, ReadingBackWithinARecordingIsAnError) {
  GraphedStep step(
      [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
        return {Tensor::Scalar(x[0].Item())};
      },
      {TestDevice()}, {}, {.warm_up = 1});
  const Tensor one = Tensor::Ones({}, {.device = TestDevice()});
  EXPECT_EQ(step.Run({one})[0].Item(), 1);
  if (TestDevice().is_cuda()) {
    EXPECT_THROW(step.Run({one}), Error);
  } else {
    EXPECT_EQ(step.Run({one})[0].Item(), 1);
  }
}

TEST(GraphedStep, InputsOnTheCpuRunAsTheyAre) {
  GraphedStep step(
      [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
        return {x[0].To(TestDevice())};
      },
      {TestDevice()}, {}, {.warm_up = 1});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(step.Run({Tensor::Scalar(i)})[0].Item(), i);
  EXPECT_EQ(step.replays(), 0);
}

}  // namespace
}  // namespace baton::nn
