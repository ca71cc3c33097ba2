// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "autograd/variable.h"
#include "core/ops/arithmetic.h"

namespace baton::autograd {
namespace {

using ::testing::HasSubstr;

Variable Leaf(double value) { return Variable(Tensor::Full({2}, value), true); }

double GradAfterBackward(Variable x) {
  x.ZeroGrad();
  Sum(x * 3.0).Backward();
  return x.grad().Select(0, 0).Item();
}

TEST(GradientHooks, AreCalledUntilTheyAreRemoved) {
  Variable x = Leaf(1);
  const auto times = [](double factor) {
    return [factor](const Tensor& g) { return ops::MulScalar(g, factor); };
  };
  const HookHandle two = x.AddHook(times(2));
  const HookHandle five = x.AddHook(times(5));
  EXPECT_EQ(GradAfterBackward(x), 30);
  two.Remove();
  EXPECT_EQ(GradAfterBackward(x), 15);
  two.Remove();
  five.Remove();
  EXPECT_EQ(GradAfterBackward(x), 3);
  HookHandle().Remove();
}

TEST(GradientHooks, StayWhenTheirHandleIsGone) {
  Variable x = Leaf(1);
  {
    x.AddHook([](const Tensor& g) { return ops::MulScalar(g, 2); });
  }
  EXPECT_EQ(GradAfterBackward(x), 6);
}

TEST(GradientHooks, HandlesOutliveTheirValue) {
  HookHandle handle;
  {
    Variable x = Leaf(1);
    Variable y = x * 2.0;
    handle = y.AddHook([](const Tensor&) { return Tensor(); });
  }
  handle.Remove();
}

TEST(GradientHooks, ThatThrowAreNamed) {
  Variable x = Leaf(1);
  const auto message = [&] {
    try {
      GradAfterBackward(x);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  x.AddHook([](const Tensor&) { return Tensor(); });
  const HookHandle clip = x.AddHook(
      [](const Tensor&) -> Tensor { Fail("here", "too large"); }, "clip");
  EXPECT_THAT(message(), HasSubstr("backward of accumulate: hook clip: "));
  EXPECT_THAT(message(), HasSubstr("too large"));
  clip.Remove();
  EXPECT_EQ(message(), "no error");
  x.AddHook([](const Tensor&) -> Tensor { throw std::runtime_error("odd"); });
  EXPECT_THAT(message(), HasSubstr("hook 3: "));
}

TEST(GradientHooks, MayComeAndGoWhilePassesRun) {
  Variable x = Leaf(1);
  std::atomic<bool> over{false};
  std::thread adder([&] {
    while (!over) x.AddHook([](const Tensor&) { return Tensor(); }).Remove();
  });
  for (int i = 0; i < 200; ++i) EXPECT_EQ(GradAfterBackward(x), 3);
  over = true;
  adder.join();
}

}  // namespace
}  // namespace baton::autograd
