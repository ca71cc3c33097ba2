// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "autograd/functions/arithmetic.h"
#include "autograd/node.h"
#include "core/ops/arithmetic.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Variable Leaf(float value) {
  return Variable(Tensor::From<float>({value}), true);
}

TEST(Variable, UndefinedHasNothing) {
  const Variable none;
  EXPECT_FALSE(none.defined());
  EXPECT_FALSE(none.tensor().defined());
  EXPECT_FALSE(none.requires_grad());
  EXPECT_FALSE(none.grad().defined());
  EXPECT_FALSE(none.gradient_edge().valid());
  EXPECT_FALSE(Variable(Tensor()).defined());
}

TEST(Variable, CopiesShareGradientAndGraph) {
  Variable x = Leaf(2);
  const Variable copy = x;
  (copy * 3.0).Backward();
  EXPECT_EQ(x.grad().Item(), 3);
  EXPECT_EQ(copy.id(), x.id());
  EXPECT_EQ(copy.gradient_edge().node, x.gradient_edge().node);
}

TEST(Variable, ResultsRequireGradWhenAnInputDoes) {
  const Variable plain(Tensor::Ones({1}));
  EXPECT_FALSE((plain * 2.0).requires_grad());
  const Variable y = plain * Leaf(2);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_STREQ(y.gradient_edge().node->name(), "mul");
}

TEST(Variable, OnlyFloatingLeavesCanRequireGrad) {
  EXPECT_THROW(Variable(Tensor::From<int64_t>({1}), true), Error);
  Variable y = Leaf(1) * 2.0;
  EXPECT_THROW(y.set_requires_grad(false), Error);
  Variable x = Leaf(1);
  x.set_requires_grad(false);
  EXPECT_FALSE((x * 2.0).requires_grad());
}

TEST(Variable, NoGradRecordsNothingOnItsThread) {
  const Variable x = Leaf(2);
  {
    NoGrad outer;
    {
      NoGrad inner;
      EXPECT_TRUE(NoGrad::Active());
    }
    EXPECT_TRUE(NoGrad::Active());
    EXPECT_FALSE((x * x).requires_grad());
    bool elsewhere = false;
    std::thread([&] { elsewhere = (x * x).requires_grad(); }).join();
    EXPECT_TRUE(elsewhere);
  }
  EXPECT_FALSE(NoGrad::Active());
  EXPECT_TRUE((x * x).requires_grad());
}

TEST(Variable, DetachSharesTheTensorWithoutHistory) {
  Variable x = Leaf(3);
  const Variable y = x * x;
  const Variable cut = y.Detach();
  EXPECT_TRUE(cut.is_leaf());
  EXPECT_FALSE(cut.requires_grad());
  EXPECT_EQ(cut.tensor().storage(), y.tensor().storage());
  (cut * x).Backward();
  EXPECT_EQ(x.grad().Item(), 9);  // of the second factor alone
}

TEST(Variable, DetachAndItsSourceShareTheVersion) {
  Variable x = Leaf(3);
  const Variable y = x * x;
  x.Detach().tensor().Fill(4);
  EXPECT_THROW(y.Backward(), Error);
}

TEST(Variable, HooksOfAnIntermediateSeeTheWholeGradient) {
  Variable x = Leaf(3);
  Variable y = x * 2.0;
  std::vector<double> seen;
  y.AddHook([&](const Tensor& grad) {
    seen.push_back(grad.Item());
    return Tensor();
  });
  (y * 2.0 + y * 5.0).Backward();
  EXPECT_THAT(seen, ElementsAre(7));
  EXPECT_EQ(x.grad().Item(), 14);
}

TEST(Variable, HooksReplaceInOrderOfAddition) {
  Variable x = Leaf(3);
  Variable y = x * 2.0;
  y.AddHook([](const Tensor& g) { return ops::AddScalar(g, 1); });
  y.AddHook([](const Tensor& g) { return ops::MulScalar(g, 10); });
  y.Backward();
  EXPECT_EQ(x.grad().Item(), 40);
}

TEST(Variable, HooksOfALeafSeeOneSumPerPass) {
  Variable x = Leaf(3);
  std::vector<double> seen;
  x.AddHook([&](const Tensor& grad) {
    seen.push_back(grad.Item());
    return ops::MulScalar(grad, -1);
  });
  (x * x).Backward();
  (x * 2.0).Backward();
  EXPECT_THAT(seen, ElementsAre(6, 2));
  EXPECT_EQ(x.grad().Item(), -8);
}

TEST(Variable, HooksNeedGrad) {
  Variable x(Tensor::Ones({1}));
  EXPECT_THROW(x.AddHook([](const Tensor&) { return Tensor(); }), Error);
}

TEST(Variable, AnErrorInAHookEndsThePass) {
  Variable x = Leaf(3);
  x.AddHook([](const Tensor&) -> Tensor { Fail("hook", "no"); });
  const absl::Status status = CatchErrors([&] { (x * 2.0).Backward(); });
  EXPECT_EQ(status.message(), "backward of accumulate: hook 1: [hook] no");
}

TEST(Variable, AccumulateGradKeepsTheFirstItself) {
  Variable x = Leaf(3);
  const Tensor first = Tensor::From<float>({1});
  x.AccumulateGrad(first);
  EXPECT_EQ(x.grad().storage(), first.storage());
  x.AccumulateGrad(Tensor::From<float>({2}));
  EXPECT_EQ(x.grad().Item(), 3);
  EXPECT_EQ(first.Item(), 1);  // held here, so not written to
}

// 256 + 1 is 256 in bf16.
TEST(Variable, GradientsOfSmallFloatsAddInF32) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    Variable x(Tensor::Zeros({1}, {.dtype = dtype}), true);
    x.AccumulateGrad(Tensor::Full({1}, 2048, {.dtype = dtype}));
    EXPECT_EQ(x.grad().dtype(), dtype);
    const Tensor first = x.grad();
    for (int i = 0; i < 3; ++i)
      x.AccumulateGrad(Tensor::Ones({1}, {.dtype = dtype}));
    EXPECT_EQ(x.grad().dtype(), DType::kF32);
    EXPECT_EQ(x.grad().Item(), 2051);
    EXPECT_EQ(first.Item(), 2048);
  }
}

// Which of the two gradients is the sum of several does not matter.
TEST(Variable, GradientsOfSmallFloatsAddToSumsInF32) {
  for (const bool wide_first : {false, true}) {
    Variable x(Tensor::Zeros({1}, {.dtype = DType::kBF16}), true);
    const Tensor wide = Tensor::Full({1}, 2048);
    const Tensor half = Tensor::Ones({1}, {.dtype = DType::kBF16});
    x.AccumulateGrad(wide_first ? wide : half);
    x.AccumulateGrad(wide_first ? half : wide);
    EXPECT_EQ(x.grad().dtype(), DType::kF32);
    EXPECT_EQ(x.grad().Item(), 2049);
  }
}

TEST(Variable, AccumulateGradRefusesWhatDoesNotFit) {
  Variable x = Leaf(3);
  const absl::Status status =
      CatchErrors([&] { x.AccumulateGrad(Tensor::Zeros({2})); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("f32[2]"));
  EXPECT_THROW(x.AccumulateGrad(Tensor::Zeros({1}, {.dtype = DType::kF64})),
               Error);
}

TEST(Variable, AnotherTensorIsSeenByAllHandlesAndByNoGraphOfBefore) {
  Variable x = Leaf(3);
  const Variable handle = x;
  const Variable y = x * x;
  x.set_grad(Tensor::Ones({1}));
  x.set_tensor(Tensor::From<double>({5}));
  EXPECT_EQ(handle.tensor().Item(), 5);
  EXPECT_EQ(handle.dtype(), DType::kF64);
  EXPECT_TRUE(handle.requires_grad());
  EXPECT_FALSE(handle.grad().defined());
  // Its gradient is of the former dtype.
  EXPECT_THROW(y.Backward(), Error);
  (x * x).Backward();
  EXPECT_EQ(handle.grad().Item(), 10);
}

TEST(Variable, ATensorThatCannotTakeThePlaceIsRefused) {
  Variable x = Leaf(3);
  EXPECT_THROW(x.set_tensor(Tensor::Zeros({2})), Error);
  EXPECT_THROW(x.set_tensor(Tensor()), Error);
  EXPECT_THROW(x.set_tensor(Tensor::From<int64_t>({5})), Error);
  Variable y = x * 2.0;
  EXPECT_THROW(y.set_tensor(Tensor::Zeros({1})), Error);
  EXPECT_EQ(x.tensor().Item(), 3);
}

TEST(Variable, GraphsDoNotKeepLeavesAlive) {
  Variable y;
  std::weak_ptr<Storage> leaf_storage;
  {
    Variable x = Leaf(3);
    leaf_storage = x.tensor().storage();
    y = x + 1.0;
  }
  EXPECT_TRUE(leaf_storage.expired());
  y.Backward();
}

}  // namespace
}  // namespace baton
