// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/graphed.h"

#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "models/nn/activation.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "models/nn/sequential.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using test::Put;
using test::TestDevice;

std::shared_ptr<Sequential> Mlp() {
  Generator generator(3);
  auto mlp = std::make_shared<Sequential>();
  mlp->Emplace<Linear>(4, 8, generator);
  mlp->Emplace<ReLU>();
  mlp->Emplace<Linear>(8, 3, generator);
  mlp->To(TestDevice());
  return mlp;
}

Tensor Rows(int64_t rows, uint64_t seed) {
  Generator generator(seed);
  return Put(RandNormal({rows, 4}, generator));
}

Tensor Labels(int64_t rows) {
  Generator generator(9);
  return Put(RandInt(0, 3, {rows}, generator));
}

// On a GPU most forwards are replays; on the CPU none is.
void ExpectReplays(const Graphed& graphed, int64_t on_gpu) {
  EXPECT_EQ(graphed.replays(), TestDevice().is_cuda() ? on_gpu : 0);
}

void ExpectSameGradients(const Module& a, const Module& b) {
  const auto left = a.Parameters(), right = b.Parameters();
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i)
    EXPECT_TRUE(ops::AllClose(left[i].grad(), right[i].grad(), 1e-5, 1e-6))
        << i;
}

TEST(Graphed, TrainsAsTheModuleDoes) {
  const auto plain = Mlp();
  Graphed graphed(Mlp(), {.warm_up = 2});
  for (uint64_t step = 0; step < 6; ++step) {
    const Variable a(Rows(5, step), true), b(Rows(5, step), true);
    const Variable loss = CrossEntropy(plain->Forward(a), Labels(5));
    const Variable same = CrossEntropy(graphed.Forward(b), Labels(5));
    EXPECT_NEAR(loss.tensor().Item(), same.tensor().Item(), 1e-5);
    loss.Backward();
    same.Backward();
    EXPECT_TRUE(ops::AllClose(a.grad(), b.grad(), 1e-5, 1e-6));
    ExpectSameGradients(*plain, graphed);
    for (const auto& parameters : {plain->Parameters(), graphed.Parameters()}) {
      for (Variable p : parameters) {
        ops::AddInto(p.tensor(), p.grad(), -0.1);
        p.ZeroGrad();
      }
    }
  }
  ExpectReplays(graphed, 4);
}

TEST(Graphed, OutputsAndGradientsAreTheCallers) {
  Graphed graphed(Mlp(), {.warm_up = 1});
  const auto plain = Mlp();
  std::vector<Tensor> outputs, expected;
  for (uint64_t step = 0; step < 4; ++step) {  // gradients add up
    const Variable y = graphed.Forward(Rows(5, step));
    outputs.push_back(y.tensor());
    autograd::Sum(y).Backward();
    const Variable z = plain->Forward(Rows(5, step));
    expected.push_back(z.tensor());
    autograd::Sum(z).Backward();
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE(ops::AllClose(outputs[i], expected[i], 1e-5, 1e-6)) << i;
  ExpectSameGradients(*plain, graphed);
  ExpectReplays(graphed, 3);
}

TEST(Graphed, OtherShapesAndModesRunAsTheyAre) {
  Graphed graphed(Mlp(), {.warm_up = 1});
  for (int i = 0; i < 3; ++i)
    autograd::Sum(graphed.Forward(Rows(5, 1))).Backward();
  ExpectReplays(graphed, 2);
  EXPECT_EQ(graphed.Forward(Rows(2, 1)).shape(), Shape({2, 3}));
  {
    const NoGrad no_grad;
    graphed.Forward(Rows(5, 1));
  }
  graphed.Eval();
  graphed.Forward(Rows(5, 1));
  ExpectReplays(graphed, 2);
}

TEST(Graphed, ASecondForwardKeepsTheFirstsActivations) {
  Graphed graphed(Mlp(), {.warm_up = 1});
  const auto plain = Mlp();
  autograd::Sum(graphed.Forward(Rows(5, 0))).Backward();
  graphed.ZeroGrad();
  const Variable a = graphed.Forward(Rows(5, 1));
  const Variable b = graphed.Forward(Rows(5, 2));
  autograd::Sum(a).Backward();
  autograd::Sum(b).Backward();
  autograd::Sum(plain->Forward(Rows(5, 1))).Backward();
  autograd::Sum(plain->Forward(Rows(5, 2))).Backward();
  ExpectSameGradients(*plain, graphed);
  ExpectReplays(graphed, 1);
}

TEST(Graphed, AsManyPassesAsAllowedWaitForTheirBackwards) {
  Graphed graphed(Mlp(), {.warm_up = 1, .passes = 2});
  const auto plain = Mlp();
  autograd::Sum(graphed.Forward(Rows(5, 0))).Backward();
  graphed.ZeroGrad();
  for (int round = 0; round < 2; ++round) {
    std::vector<Variable> waiting;
    for (uint64_t i = 1; i <= 3; ++i) {
      waiting.push_back(graphed.Forward(Rows(5, i)));
      autograd::Sum(plain->Forward(Rows(5, i))).Backward();
    }
    for (const Variable& y : waiting) autograd::Sum(y).Backward();
    ExpectSameGradients(*plain, graphed);
    ExpectReplays(graphed, 2 * (round + 1));
  }
}

// Reads its output back.
class Reader : public Module {
 public:
  Reader() : mlp_(RegisterModule("mlp", Mlp())) {}
  Variable Forward(const Variable& x) override {
    Variable y = mlp_.Forward(x);
    last = y.tensor().To(Device::Cpu()).ToVector<float>();
    return y;
  }
  std::vector<float> last;

 private:
  Module& mlp_;
};

TEST(Graphed, WhatCannotBeRecordedRunsAsItIs) {
  const auto reader = std::make_shared<Reader>();
  Graphed graphed(reader, {.warm_up = 1});
  for (uint64_t step = 0; step < 4; ++step) {
    const Variable y = graphed.Forward(Rows(5, step));
    autograd::Sum(y).Backward();
    EXPECT_EQ(reader->last, y.tensor().ToVector<float>());
  }
  ExpectReplays(graphed, 0);
}

TEST(Graphed, HooksOnParametersRunOnce) {
  Graphed graphed(Mlp(), {.warm_up = 1});
  int calls = 0;
  graphed.Parameters()[0].AddHook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  for (int i = 0; i < 3; ++i)
    autograd::Sum(graphed.Forward(Rows(5, 1))).Backward();
  EXPECT_EQ(calls, 3);
}

TEST(Graphed, MovedWeightsAreSeen) {
  Graphed graphed(Mlp(), {.warm_up = 1});
  for (int i = 0; i < 2; ++i)
    autograd::Sum(graphed.Forward(Rows(5, 1))).Backward();
  graphed.To(DType::kF64);
  const Variable y = graphed.Forward(Rows(5, 1).To(DType::kF64));
  EXPECT_EQ(y.dtype(), DType::kF64);
  graphed.To(DType::kF32);
  for (const Variable& parameter : graphed.Parameters())
    parameter.tensor().Fill(0);
  for (int i = 0; i < 3; ++i) {
    const Variable zero = graphed.Forward(Rows(5, 1));
    EXPECT_EQ(zero.tensor().ToVector<float>(), std::vector<float>(15, 0));
  }
}

TEST(Graphed, NoWarmUpIsRefused) {
  EXPECT_THROW(Graphed(Mlp(), {.warm_up = 0}), Error);
}

// As a stage of a pipeline whose worker computes in another dtype is given f32.
TEST(Graphed, TakesWhatItsModuleWants) {
  Generator generator(1);
  const auto linear = std::make_shared<Linear>(3, 2, generator);
  linear->To(test::TestDevice());
  linear->To(DType::kF64);
  Graphed graphed(linear, {});
  const Variable x(test::Put(RandNormal({4, 3}, generator)));
  for (int i = 0; i < 3; ++i) {
    const Variable y = graphed.Forward(graphed.Placed(x));
    EXPECT_TRUE(
        ops::BitEqual(y.tensor(), linear->Forward(linear->Placed(x)).tensor()));
    y.Backward(Tensor::Ones(
        {4, 2}, {.dtype = DType::kF64, .device = test::TestDevice()}));
  }
}

}  // namespace
}  // namespace baton::nn
