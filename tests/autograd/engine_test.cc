// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/function.h"
#include "autograd/functions/linear.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"

namespace baton::autograd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Variable Leaf(float value) {
  return Variable(Tensor::From<float>({value}), true);
}

std::string MessageOf(const std::function<void()>& call) {
  return std::string(CatchErrors(call).message());
}

TEST(Backward, AccumulatesOverPasses) {
  Variable x = Leaf(2);
  (x * x).Backward();
  EXPECT_EQ(x.grad().Item(), 4);
  (x * x).Backward();
  EXPECT_EQ(x.grad().Item(), 8);
  x.ZeroGrad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, SumsOverADiamond) {
  Variable x = Leaf(3);
  const Variable y = x * 2.0;
  const Variable left = y * y, right = y + 1.0;
  (left * right).Backward();  // d(4x^2 (2x + 1)) = 24x^2 + 8x
  EXPECT_EQ(x.grad().Item(), 24 * 9 + 8 * 3);
}

TEST(Backward, PathsOfUnequalLengthMeetOnce) {
  Variable x = Leaf(1);
  Variable longer = x;
  for (int i = 0; i < 10; ++i) longer = longer * 2.0;
  (longer + x).Backward();
  EXPECT_EQ(x.grad().Item(), 1025);
}

TEST(Backward, ASecondPassNeedsRetainGraph) {
  Variable x = Leaf(3);
  const Variable y = x * x;
  y.Backward(Tensor(), /*retain_graph=*/true);
  y.Backward();
  EXPECT_EQ(x.grad().Item(), 12);
  const std::string message = MessageOf([&] { y.Backward(); });
  EXPECT_THAT(message, HasSubstr("backward of mul: [mul]"));
  EXPECT_THAT(message, HasSubstr("pass retain_graph to the first"));
  EXPECT_EQ(x.grad().Item(), 12);
}

TEST(Backward, FreesSavedTensors) {
  Variable x(Tensor::Ones({1024}), true);
  const Variable y = Exp(x);
  const std::weak_ptr<Storage> saved = y.tensor().storage();
  Variable z = Sum(y * 2.0);
  const long before = saved.use_count();
  z.Backward();
  EXPECT_LT(saved.use_count(), before);
}

TEST(Backward, StartsFromAGivenGradient) {
  Variable x(Tensor::Ones({2}), true);
  (x * 3.0).Backward(Tensor::From<float>({1, 10}));
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{3, 30}));
}

TEST(Backward, NamesWhatIsWrongWithItsStart) {
  Variable x(Tensor::Ones({2}), true);
  const Variable y = x * 3.0;
  EXPECT_THAT(MessageOf([&] { y.Backward(); }),
              HasSubstr("[backward] a value of shape [2] needs a gradient"));
  EXPECT_THAT(MessageOf([&] { y.Backward(Tensor::Ones({3})); }),
              HasSubstr("f32[3] does not fit its value f32[2]"));
  EXPECT_THAT(MessageOf([&] { x.Detach().Backward(); }),
              HasSubstr("does not require grad"));
  EXPECT_THAT(MessageOf([&] { Variable().Backward(); }),
              HasSubstr("undefined"));
  EXPECT_THAT(MessageOf([&] {
                Backward({y}, {Tensor(), Tensor()});
              }),
              HasSubstr("2 gradients for 1 outputs"));
}

TEST(Backward, OfALeafIsItsGradient) {
  Variable x = Leaf(3);
  x.Backward();
  EXPECT_EQ(x.grad().Item(), 1);
}

TEST(Backward, OfSeveralOutputsIsOnePass) {
  Variable x = Leaf(3);
  const Variable shared = x * x;
  Backward({shared * 2.0, shared * 3.0, shared}, {});
  EXPECT_EQ(x.grad().Item(), 36);
}

TEST(Backward, UnusedOutputsCountAsZero) {
  Variable x(Tensor::From<float>({1, 2, 3, 4}), true);
  const std::vector<Variable> parts = Split(x, 1);
  (parts[1] * parts[3]).Backward();
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{0, 4, 0, 2}));
}

TEST(Backward, LeavesThatNeedNoGradGetNone) {
  Variable x = Leaf(3);
  Variable y(Tensor::From<float>({2}));
  (x * y).Backward();
  EXPECT_EQ(x.grad().Item(), 2);
  EXPECT_FALSE(y.grad().defined());
}

TEST(Backward, GradsOfTwoLeavesDoNotShareMemory) {
  Variable a = Leaf(1), b = Leaf(2);
  (a + b).Backward();  // hands one tensor to both
  (a * 5.0).Backward();
  EXPECT_EQ(a.grad().Item(), 6);
  EXPECT_EQ(b.grad().Item(), 1);
}

TEST(Backward, AGradientThatSomeoneHoldsStaysAsItIs) {
  Variable x = Leaf(1);
  (x * 2.0).Backward();
  const Tensor held = x.grad();
  (x * 3.0).Backward();
  EXPECT_EQ(held.Item(), 2);
  EXPECT_EQ(x.grad().Item(), 5);
}

TEST(Backward, InPlaceWritesToWhatItNeedsAreErrors) {
  Variable x = Leaf(2);
  const Variable y = x * x;
  x.tensor().Fill(5);
  const std::string message = MessageOf([&] { y.Backward(); });
  EXPECT_THAT(message, HasSubstr("[mul] a tensor that backward needs, f32[1]"));
  EXPECT_THAT(message, HasSubstr("written in place"));
}

TEST(Backward, InPlaceWritesToWhatItDoesNotNeedAreFine) {
  Variable x = Leaf(2);
  const Variable y = x * 3.0;
  x.tensor().Fill(5);
  y.Backward();
  EXPECT_EQ(x.grad().Item(), 3);
}

TEST(Backward, OverAChainOfAHundredThousandNodes) {
  Variable x = Leaf(1);
  Variable y = x;
  for (int i = 0; i < 100'000; ++i) y = y + 1.0;
  y.Backward();
  EXPECT_EQ(x.grad().Item(), 1);
}

TEST(Backward, ALongChainDiesWithoutHavingRun) {
  Variable x = Leaf(1);
  const std::weak_ptr<Node> first = (x + 0.0).gradient_edge().node;
  Variable y = x + 1.0;
  const std::weak_ptr<Node> early = y.gradient_edge().node;
  for (int i = 0; i < 100'000; ++i) y = y + 1.0;
  y = Variable();
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(early.expired());
}

TEST(Backward, OverAWideFanIn) {
  Variable x = Leaf(1);
  Variable sum = x;
  for (int i = 0; i < 20'000; ++i) sum = sum + x;
  sum.Backward();
  EXPECT_EQ(x.grad().Item(), 20'001);
}

TEST(Backward, InThreadsOverOneSharedLeaf) {
  Variable x = Leaf(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (x * 2.0).Backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(x.grad().Item(), 400);
}

TEST(Backward, ANestedPassFromAHookIsItsOwn) {
  Variable x = Leaf(3), other = Leaf(4);
  Variable y = x * 2.0;
  y.AddHook([&](const Tensor&) {
    (other * other).Backward();
    return Tensor();
  });
  y.Backward();
  EXPECT_EQ(x.grad().Item(), 2);
  EXPECT_EQ(other.grad().Item(), 8);
}

TEST(Backward, LeavesGradientsOfLeavesForLater) {
  Variable weight(Tensor::Full({2, 3}, 2), true);
  Variable bias(Tensor::Zeros({2}), true);
  Variable hooked(Tensor::Ones({2, 2}), true);
  int hooks = 0;
  hooked.AddHook([&](const Tensor&) {
    ++hooks;
    return Tensor();
  });
  Variable x(Tensor::Ones({4, 3}), true);
  const Variable y = Sum(Linear(Linear(x, weight, bias), hooked, Variable()));
  std::vector<std::string> now;
  std::vector<std::pair<Variable, DeferredGradient>> late;
  const auto name = [&](const Variable& leaf) {
    return leaf.id() == x.id()        ? "x"
           : leaf.id() == weight.id() ? "weight"
           : leaf.id() == bias.id()   ? "bias"
                                      : "hooked";
  };
  GraphTask::Options options;
  options.sink = [&](const Variable& leaf, const Gradient&) {
    now.push_back(name(leaf));
  };
  options.postpone = [&](const Variable& leaf) { return leaf.id() != x.id(); };
  options.later = [&](const Variable& leaf, DeferredGradient gradient) {
    late.emplace_back(leaf, std::move(gradient));
  };
  Backward({y}, {}, std::move(options));
  EXPECT_THAT(now, UnorderedElementsAre("x", "hooked"));
  EXPECT_EQ(hooks, 1);
  ASSERT_EQ(late.size(), 2U);
  for (auto& [leaf, gradient] : late) {
    const Tensor of_weight = gradient().values();
    EXPECT_EQ(of_weight.shape(), leaf.tensor().shape()) << name(leaf);
    EXPECT_THAT(of_weight.Contiguous().ToVector<float>(), Each(8))
        << name(leaf);  // 4 rows by 2 columns
  }
}

// A product that gives both is not computed twice.
TEST(Backward, LateGradientsOfANodeAreComputedAtOnce) {
  const Variable x(Tensor::Ones({2}), true), weight(Tensor::Ones({2}), true),
      bias(Tensor::Ones({2}), true);
  std::vector<std::vector<bool>> asked;
  const Variable y = RecordJoint(
      "joint", Tensor::Ones({2}), {}, {x, weight, bias},
      [&](const Backprop& p) {
        asked.push_back({p.needs(0), p.needs(1), p.needs(2)});
        return Tensors{p.dy(), p.dy(), p.dy()};
      },
      GradientParts::kApart);
  std::vector<DeferredGradient> late;
  GraphTask::Options options;
  options.sink = [](const Variable&, const Gradient&) {};
  options.postpone = [&](const Variable& leaf) { return leaf.id() != x.id(); };
  options.later = [&](const Variable&, DeferredGradient gradient) {
    late.push_back(std::move(gradient));
  };
  Backward({Sum(y)}, {}, std::move(options));
  ASSERT_EQ(late.size(), 2U);
  for (DeferredGradient& gradient : late)
    EXPECT_EQ(gradient().values().ToVector<float>(), std::vector<float>(2, 1));
  EXPECT_THAT(asked, ElementsAre(ElementsAre(true, false, false),
                                 ElementsAre(false, true, true)));
}

TEST(Backward, ALateGradientSeesThatItsInputsWereWritten) {
  Variable weight(Tensor::Full({2, 2}, 2), true);
  const Variable x(Tensor::Ones({4, 2}));
  DeferredGradient late;
  GraphTask::Options options;
  options.postpone = [](const Variable&) { return true; };
  options.later = [&](const Variable&, DeferredGradient gradient) {
    late = std::move(gradient);
  };
  Backward({Sum(Linear(x, weight, Variable()))}, {}, std::move(options));
  ASSERT_TRUE(late);
  x.tensor().Fill(3);
  EXPECT_THAT(MessageOf([&] { late(); }), HasSubstr("in place"));
}

TEST(Grad, OfLeavesAndIntermediatesLeavesGradAlone) {
  Variable x = Leaf(3);
  const Variable y = x * x;
  const Variable z = y * y;
  const std::vector<Tensor> grads = Grad({z}, {x, y, z});
  EXPECT_EQ(grads[0].Item(), 4 * 27);
  EXPECT_EQ(grads[1].Item(), 18);
  EXPECT_EQ(grads[2].Item(), 1);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Grad, RunsOnlyWhatLeadsToTheInputs) {
  Variable x = Leaf(3), w = Leaf(2);
  Variable side = w * 5.0;
  bool ran = false;
  side.AddHook([&](const Tensor&) {
    ran = true;
    return Tensor();
  });
  EXPECT_EQ(Grad({x * side}, {x})[0].Item(), 10);
  EXPECT_FALSE(ran);
}

TEST(Grad, OfAnIntermediateDoesNotRunWhatLiesBelow) {
  Variable x = Leaf(3);
  const Variable y = x * x;
  EXPECT_EQ(Grad({y * 2.0}, {y})[0].Item(), 2);
  y.Backward();  // y's own op was not run and not freed
  EXPECT_EQ(x.grad().Item(), 6);
}

TEST(Grad, WeighsOutputs) {
  Variable x(Tensor::Ones({2}), true);
  const std::vector<Tensor> grads =
      Grad({x * 2.0, x * 3.0}, {x},
           {Tensor::From<float>({1, 10}), Tensor::From<float>({100, 1000})});
  EXPECT_EQ(grads[0].ToVector<float>(), (std::vector<float>{302, 3020}));
}

TEST(Grad, OfTheSameInputTwiceIsGivenTwice) {
  Variable x = Leaf(3);
  const std::vector<Tensor> grads = Grad({x * 2.0}, {x, x});
  EXPECT_EQ(grads[0].Item(), 2);
  EXPECT_EQ(grads[1].Item(), 2);
}

TEST(Grad, OfAnUnreachedInputIsUndefined) {
  Variable x = Leaf(3), y = Leaf(4);
  const std::vector<Tensor> grads = Grad({x * 2.0}, {y, x});
  EXPECT_FALSE(grads[0].defined());
  EXPECT_EQ(grads[1].Item(), 2);
}

TEST(Grad, OfAnInputWithoutGradIsAnError) {
  Variable x = Leaf(3);
  EXPECT_THAT(MessageOf([&] {
                Grad({x * 2.0}, {x, x.Detach()});
              }),
              HasSubstr("[grad] input 1 does not require grad"));
}

TEST(Grad, RetainsTheGraphWhenAsked) {
  Variable x = Leaf(3);
  const Variable y = x * x;
  EXPECT_EQ(Grad({y}, {x}, {}, true)[0].Item(), 6);
  EXPECT_EQ(Grad({y}, {x})[0].Item(), 6);
  EXPECT_THROW(Grad({y}, {x}), Error);
}

}  // namespace
}  // namespace baton::autograd
