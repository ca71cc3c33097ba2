// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/autocast.h"

#include <gtest/gtest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "models/nn/activation.h"
#include "models/nn/conv2d.h"
#include "models/nn/flatten.h"
#include "models/nn/group_norm.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "models/nn/sequential.h"
#include "optim/sgd.h"
#include "tests/support/golden/golden_case.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using ::baton::test::Put;
using ::baton::test::TestDevice;
using ::baton::testing::GoldenCase;
using ::baton::testing::LargestDistance;

void Build(Sequential& net) {
  Generator generator(0);
  net.Emplace<Conv2d>(3, 8, nn::Conv2dOptions{}, generator);
  net.Emplace<GroupNorm>(2, 8);
  net.Emplace<SiLU>();
  net.Emplace<Flatten>();
  net.Emplace<Linear>(8 * 16, 10, generator);
}

// How far two tensors are apart, by the largest element of the second.
double RelativeDistance(const Tensor& a, const Tensor& b) {
  return LargestDistance(a.To(DType::kF64), b.To(DType::kF64)) /
         LargestDistance(b.To(DType::kF64),
                         Tensor::ZerosLike(b).To(DType::kF64));
}

// What PyTorch's autocast gives in bf16; where roundings lie differs, as group
// norms there take bf16 on the CPU, and f32 here and on GPUs.
TEST(AutocastNet, ComputesWhatPyTorchsDoesWithinBf16sPrecision) {
  const GoldenCase golden("layers.safetensors", "autocast");
  Sequential net;
  Build(net);
  net.To(TestDevice());
  ASSERT_TRUE(net.LoadStateDict(golden.State()).ok());
  const Variable x = golden.Leaf("x");
  Variable y, loss;
  {
    const AutocastScope autocast(DType::kBF16);
    y = net.Forward(x);
    loss = CrossEntropy(y, golden["labels"]);
  }
  EXPECT_EQ(y.dtype(), DType::kBF16);
  EXPECT_EQ(loss.dtype(), DType::kF32);
  loss.Backward();
  EXPECT_LT(RelativeDistance(y.tensor(), golden["y"]), 0.02);
  EXPECT_LT(RelativeDistance(loss.tensor(), golden["loss"]), 0.01);
  EXPECT_LT(RelativeDistance(x.grad(), golden["dx"]), 0.03);
  for (const auto& [name, parameter] : net.NamedParameters()) {
    EXPECT_EQ(parameter.grad().dtype(), DType::kF32) << name;
    EXPECT_LT(RelativeDistance(parameter.grad(), golden["grad." + name]), 0.03)
        << name;
  }
}

TEST(AutocastNet, TrainsParametersThatStayInF32) {
  Sequential net;
  Build(net);
  net.To(TestDevice());
  optim::Sgd sgd(net.Parameters(), {.lr = 0.05f});
  Generator generator(3);
  const Tensor x = Put(RandNormal({8, 3, 6, 6}, generator));
  const Tensor labels = Put<int64_t>({0, 1, 2, 3, 4, 5, 6, 7});
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    net.ZeroGrad();
    Variable loss;
    {
      const AutocastScope autocast(DType::kBF16);
      loss = CrossEntropy(net.Forward(x), labels);
    }
    loss.Backward();
    sgd.Step();
    last = loss.tensor().Item();
    if (step == 0) first = last;
  }
  for (const Variable& parameter : net.Parameters())
    EXPECT_EQ(parameter.dtype(), DType::kF32);
  EXPECT_LT(last, first / 2);
}

}  // namespace
}  // namespace baton::nn
