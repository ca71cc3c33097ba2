// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/autocast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/attention.h"
#include "autograd/functions/conv.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/layer_norm.h"
#include "autograd/functions/linear.h"
#include "autograd/functions/loss.h"
#include "autograd/functions/norm.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/rnn.h"
#include "autograd/functions/scan.h"
#include "autograd/functions/softmax.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::test::ErrorOf;
using ::baton::test::Put;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr DType kBF16 = DType::kBF16, kF32 = DType::kF32;

Variable Leaf(const Shape& shape, DType dtype = kF32, uint64_t seed = 1) {
  Generator generator(seed);
  return Variable(Put(RandNormal(shape, generator).To(dtype)), true);
}

// The dtype of what `op` gives within a scope, of leaves of these shapes, whose
// gradients are to be of the leaves' own dtype.
DType ResultOf(const std::vector<Shape>& shapes, DType dtype,
               const std::function<Variable(const std::vector<Variable>&)>& op,
               DType scope = kBF16) {
  std::vector<Variable> leaves;
  for (const Shape& shape : shapes)
    leaves.push_back(Leaf(shape, dtype, leaves.size() + 1));
  Variable y;
  {
    const AutocastScope autocast(scope);
    y = op(leaves);
  }
  y.Backward(Put(Tensor::Ones(y.shape()).To(y.dtype())));
  for (const Variable& leaf : leaves) EXPECT_EQ(leaf.grad().dtype(), dtype);
  return y.dtype();
}
using Values = const std::vector<Variable>&;

TEST(Autocast, ProductsComputeInTheScopesDType) {
  for (const DType scope : {kBF16, DType::kF16}) {
    const auto result = [&](const std::vector<Shape>& shapes, auto op) {
      return ResultOf(shapes, kF32, op, scope);
    };
    EXPECT_EQ(result({{2, 3}, {4, 3}, {4}},
                     [](Values v) { return Linear(v[0], v[1], v[2]); }),
              scope);
    EXPECT_EQ(result({{2, 3}, {4, 3}},
                     [](Values v) {
                       return LinearActivation(Activation::kRelu, v[0], v[1]);
                     }),
              scope);
    EXPECT_EQ(
        result({{2, 3}, {3, 4}}, [](Values v) { return Matmul(v[0], v[1]); }),
        scope);
    EXPECT_EQ(result({{1, 2, 4, 4}, {3, 2, 3, 3}, {3}},
                     [](Values v) { return Conv2d(v[0], v[1], v[2]); }),
              scope);
    EXPECT_EQ(result({{1, 2, 5}, {3, 2, 3}, {3}},
                     [](Values v) { return Conv1d(v[0], v[1], v[2]); }),
              scope);
    EXPECT_EQ(
        result({{1, 2, 4, 4}, {2, 3, 3, 3}, {3}},
               [](Values v) { return ConvTranspose2d(v[0], v[1], v[2]); }),
        scope);
    EXPECT_EQ(result({{1, 2, 3, 8}, {1, 2, 3, 8}, {1, 2, 3, 8}},
                     [](Values v) { return Attention(v[0], v[1], v[2]); }),
              scope);
    EXPECT_EQ(
        result({{1, 3, 24}}, [](Values v) { return SelfAttention(v[0], 1); }),
        scope);
    EXPECT_EQ(result({{3, 2, 4}, {12, 4}, {12, 4}},
                     [](Values v) {
                       return Rnn(v[0], Variable(), Variable(),
                                  {v[1], v[2], Variable(), Variable()},
                                  {.cell = ops::RnnCell::kGru})
                           .y;
                     }),
              scope);
  }
}

TEST(Autocast, NormsLossesReductionsAndPowersComputeInF32) {
  const Tensor labels = Put<int64_t>({1, 0});
  const std::vector<std::function<Variable(Values)>> ops = {
      [](Values v) { return Softmax(v[0], 1); },
      [](Values v) { return LogSoftmax(v[0], 1); },
      [&](Values v) { return CrossEntropy(v[0], labels); },
      [](Values v) { return MseLoss(v[0], v[0] * 2.0); },
      [](Values v) { return Sum(v[0]); },
      [](Values v) { return Sum(v[0], {1}); },
      [](Values v) { return Mean(v[0]); },
      [](Values v) { return Mean(v[0], {1}); },
      [](Values v) { return Exp(v[0]); },
      [](Values v) { return Log(v[0] * v[0]); },
      [](Values v) { return PowScalar(v[0], 2); },
      [](Values v) { return Pow(v[0], v[0]); },
      [](Values v) { return CumSum(v[0], 1); },
  };
  for (size_t i = 0; i < ops.size(); ++i)
    EXPECT_EQ(ResultOf({{2, 4}}, kBF16, ops[i]), kF32) << i;
  EXPECT_EQ(ResultOf({{2, 4}, {4}, {4}}, kBF16,
                     [](Values v) { return LayerNorm(v[0], v[1], v[2]); }),
            kF32);
  EXPECT_EQ(ResultOf({{2, 4}, {4}, {4}}, kBF16,
                     [](Values v) { return GroupNorm(v[0], 2, v[1], v[2]); }),
            kF32);
}

TEST(Autocast, OpsOfSeveralValuesTakeTheWiderDType) {
  const Variable half = Leaf({2, 3}, kBF16), wide = Leaf({2, 3}, kF32, 2);
  {
    const AutocastScope autocast(kBF16);
    for (const Variable& y :
         {half + wide, wide - half, half * wide, wide / half,
          Maximum(half, wide), Minimum(half, wide), Cat({half, wide}, 0),
          Stack({wide, half}, 0),
          Where(Put(Tensor::Ones({2, 3}).To(DType::kBool)), half, wide),
          BatchNormTrain(half, Put(Tensor::Ones({3})), Put(Tensor::Zeros({3})),
                         wide, Tensor(), Tensor())}) {
      EXPECT_EQ(y.dtype(), kF32);
    }
    // What is all in one dtype stays there, and batch norms take bf16.
    EXPECT_EQ((half + half).dtype(), kBF16);
    EXPECT_EQ(
        BatchNormTrain(half, Put(Tensor::Ones({3})), Put(Tensor::Zeros({3})),
                       Variable(), Tensor(), Tensor())
            .dtype(),
        kBF16);
  }
  EXPECT_THAT(ErrorOf([&] { half + wide; }), HasSubstr("[add]"));
}

TEST(Autocast, LeavesF64AndIntegersAlone) {
  EXPECT_EQ(ResultOf({{2, 3}, {3, 2}}, DType::kF64,
                     [](Values v) { return Matmul(v[0], v[1]); }),
            DType::kF64);
  EXPECT_THAT(ErrorOf([] { const AutocastScope scope(kF32); }),
              HasSubstr("[autocast] expected bf16 or f16"));
}

TEST(Autocast, HoldsForItsOwnThreadNestsAndMayBeTurnedOff) {
  EXPECT_EQ(AutocastScope::Current(), std::nullopt);
  {
    const AutocastScope outer(kBF16);
    EXPECT_EQ(AutocastScope::Current(), kBF16);
    {
      const AutocastScope inner(DType::kF16);
      EXPECT_EQ(AutocastScope::Current(), DType::kF16);
    }
    {
      const AutocastScope off = AutocastScope::Off();
      EXPECT_EQ(AutocastScope::Current(), std::nullopt);
      const Variable x = Leaf({2, 2});
      EXPECT_EQ(Matmul(x, x).dtype(), kF32);
    }
    EXPECT_EQ(AutocastScope::Current(), kBF16);
    std::optional<DType> elsewhere = kF32;
    std::thread([&] { elsewhere = AutocastScope::Current(); }).join();
    EXPECT_EQ(elsewhere, std::nullopt);
  }
  EXPECT_EQ(AutocastScope::Current(), std::nullopt);
}

TEST(Autocast, CastsAParameterOnceWithinTheOutermostScope) {
  const Variable weight = Leaf({3, 3});
  const AutocastScope autocast(kBF16);
  const Variable first = Lowered(weight);
  {
    const AutocastScope inner(kBF16);
    EXPECT_EQ(Lowered(weight).id(), first.id());
  }
  EXPECT_EQ(Lowered(weight).id(), first.id());
  // What requires no gradient is no parameter.
  const Variable x(weight.tensor());
  EXPECT_NE(Lowered(x).id(), Lowered(x).id());
}

TEST(Autocast, SumsTheGradientsOfAParameterThatSeveralOpsUse) {
  const Variable weight(Put(Tensor::Full({1, 1}, 2)), true);
  const Variable x(Put(Tensor::Full({1, 1}, 3)));
  Variable y;
  {
    const AutocastScope autocast(kBF16);
    y = Sum(Matmul(Matmul(x, weight), weight));  // 3 w^2
  }
  y.Backward();
  EXPECT_THAT(weight.grad().ToVector<float>(), Each(12));
}

TEST(Autocast, CastsAnewWhatWasWritten) {
  Variable weight(Put(Tensor::Ones({2, 2})), true);
  const Variable x(Put(Tensor::Ones({1, 2})));
  const AutocastScope autocast(kBF16);
  const auto product = [&] {
    return Matmul(x, weight).tensor().To(kF32).ToVector<float>();
  };
  EXPECT_THAT(product(), Each(2));
  weight.tensor().Fill(3);
  EXPECT_THAT(product(), Each(6));
  weight.set_tensor(Put(Tensor::Full({2, 2}, 5)));
  EXPECT_THAT(product(), Each(10));
}

TEST(Autocast, KeepsCastsOfForwardsWithoutGradientsApart) {
  const Variable weight = Leaf({2, 2}), x(Put(Tensor::Ones({1, 2})));
  const AutocastScope autocast(kBF16);
  {
    const NoGrad no_grad;
    EXPECT_FALSE(Matmul(x, weight).requires_grad());
  }
  const Variable y = Matmul(x, weight);
  ASSERT_TRUE(y.requires_grad());
  Sum(y).Backward();
  EXPECT_THAT(weight.grad().ToVector<float>(), Each(1));
}

TEST(Autocast, RunsBackwardsWithinTheScopeToo) {
  const Variable weight = Leaf({4, 3}), x = Leaf({2, 3}, kF32, 2);
  const auto gradients = [&](bool within) {
    for (Variable v : {weight, x}) v.ZeroGrad();
    Variable loss;
    {
      const AutocastScope autocast(kBF16);
      loss = Mean(Linear(x, weight));
      if (within) loss.Backward();
    }
    if (!within) loss.Backward();
    return std::vector<Tensor>{weight.grad(), x.grad()};
  };
  const auto inside = gradients(true), outside = gradients(false);
  for (size_t i = 0; i < inside.size(); ++i) {
    EXPECT_EQ(inside[i].dtype(), kF32);
    EXPECT_TRUE(ops::BitEqual(inside[i], outside[i]));
  }
}

}  // namespace
}  // namespace baton::autograd
