// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/within.h"

// Gradients of chosen values, and gradients that move to their parameters.
namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::Fails;
using testing::IsOk;

Variable MakeParameter(double value) { return Leaf(value); }

Variable MakeConstant(double value) {
  return Variable(test::Put(Tensor::Full({2}, value)));
}

absl::StatusOr<Tensor> GradOf(const RRef<Variable>& parameter) {
  ASSIGN_OR_RETURN(auto local, parameter.LocalValue());
  return local->grad();
}

class GradTest : public ThreeWorkers {
 protected:
  GradTest()
      : ThreeWorkers([](rpc::Registry& registry) {
          registry.AddFunction<&MakeParameter>()
              .AddFunction<&MakeConstant>()
              .AddFunction<&GradOf>();
        }) {}
  RRef<Variable> ParameterAt(const char* worker, double value) {
    return *rpc::CreateBy<&MakeParameter>(agent(), worker, value).Await();
  }
  // Of the worker's first context: "gradients" or "state".
  std::string Column(const char* worker, const std::string& name) {
    const auto views = cluster_.at(worker).GetDebugInfo().views;
    for (size_t i = 0; i < views.at(0).columns.size(); ++i) {
      if (views[0].columns[i].name == name && !views[0].rows.empty())
        return views[0].rows[0].at(i);
    }
    return "none";
  }
  Tensor GradAt(const char* worker, const RRef<Variable>& parameter) {
    return *agent().Async<&GradOf>(worker, parameter).Await();
  }
};
INSTANTIATE_TEST_SUITE_P(, GradTest, testing::kTransports,
                         testing::TransportName);

// y = (x w)^2 at carol, w at bob.
TEST_P(GradTest, OfValuesHereAndParametersElsewhere) {
  RRef<Variable> w = ParameterAt("bob", 3);
  Variable x = Leaf(2), other = Leaf(5);
  Context ctx(agent());
  Variable here = *w.Fetch(ctx).Await();
  Variable product = *agent().Async<&Multiply>("carol", ctx, x, here).Await();
  Variable loss = autograd::Sum(product * product * other);
  const auto gradients = ctx.Grad({loss}, {x, w, product});
  ASSERT_THAT(gradients, IsOk());
  ASSERT_EQ(gradients->size(), 3u);
  Variable x2 = Leaf(2), w2 = Leaf(3);
  Variable product2 = x2 * w2;
  const auto local = autograd::Grad(
      {autograd::Sum(product2 * product2 * other)}, {x2, w2, product2});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(ops::BitEqual((*gradients)[i], local[i])) << i;
  EXPECT_TRUE(ctx.Gradients().empty());
  EXPECT_EQ(Column("bob", "gradients"), "0");
}

TEST_P(GradTest, LeavesTheGraphToABackwardThatFollows) {
  RRef<Variable> w = ParameterAt("bob", 3);
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable here = *w.Fetch(ctx).Await();
  Variable loss =
      autograd::Sum(*agent().Async<&Multiply>("bob", ctx, here, x).Await());
  const auto gradients = ctx.Grad({loss}, {w}, {}, {.retain_graph = true});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ(First(gradients->at(0)), 2);
  ASSERT_THAT(ctx.Backward(loss), IsOk());
  EXPECT_EQ(First(ctx.GradientOf(x)), 3);
  EXPECT_EQ(Column("bob", "gradients"), "1");
}

TEST_P(GradTest, OfAValueThatAWorkerMadeAndKept) {
  Variable a = Leaf(3), b = Leaf(5);
  Context ctx(agent());
  RRef<Variable> product = agent().Remote<&Multiply>("bob", ctx, a, b);
  Variable here = *product.Fetch(ctx).Await();
  const auto gradients = ctx.Grad({autograd::Sum(here * here)}, {product, a});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ(First(gradients->at(0)), 30);
  EXPECT_EQ(First(gradients->at(1)), 150);
}

TEST_P(GradTest, IsUndefinedWhereTheLossDoesNotReach) {
  RRef<Variable> unused = ParameterAt("carol", 3);
  Variable x = Leaf(2), y = Leaf(5);
  Context ctx(agent());
  Variable z = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
  const auto gradients = ctx.Grad({autograd::Sum(z)}, {unused, y, x});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_FALSE(gradients->at(0).defined());
  EXPECT_FALSE(gradients->at(1).defined());
  EXPECT_EQ(First(gradients->at(2)), 4);
}

TEST_P(GradTest, IsSentWithoutMarksFromTheSecondTimeOn) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable loss =
      autograd::Sum(*agent().Async<&Multiply>("bob", ctx, x, x).Await());
  for (const Markings markings : {Markings::kExact, Markings::kFast}) {
    for (int i = 0; i < 3; ++i) {
      const auto gradients = ctx.Grad(
          {loss}, {x}, {}, {.retain_graph = true, .markings = markings});
      ASSERT_THAT(gradients, IsOk());
      EXPECT_EQ(First(gradients->at(0)), 4);
    }
  }
}

// Whoever asks carol first to finish, what it has is for alice.
TEST_P(GradTest, OfAParameterBeyondTwoWorkersWithoutMarks) {
  RRef<Variable> w = ParameterAt("carol", 3);
  Variable x = Leaf(2);
  for (int i = 0; i < 20; ++i) {
    Context ctx(agent());
    Variable here = *w.Fetch(ctx).Await();
    Variable y = *agent()
                      .Async<&Travel>("bob", ctx, here * x,
                                      std::vector<std::string>{"carol"})
                      .Await();
    const auto gradients =
        ctx.Grad({autograd::Sum(y)}, {w, x}, {}, {.markings = Markings::kFast});
    ASSERT_THAT(gradients, IsOk());
    EXPECT_EQ(First(gradients->at(0)), 4 * 6 * 6 * 6 * 2);
    EXPECT_EQ(First(gradients->at(1)), 4 * 6 * 6 * 6 * 3);
  }
}

// What was announced before the failure is dropped.
TEST_P(GradTest, ThatFailsKeepsNothingAtTheWorkersThatWereAsked) {
  const RRef<Variable> w = ParameterAt("bob", 3);
  const RRef<Variable> constant =
      *rpc::CreateBy<&MakeConstant>(agent(), "carol", 3.0).Await();
  Variable x = Leaf(2);
  Context first(agent());
  Variable stale = *agent().Async<&Multiply>("bob", first, x, x).Await();
  ASSERT_THAT(first.Release().Await(), IsOk());
  Context ctx(agent());
  const auto dropped = [&] {
    return testing::Within(std::chrono::seconds(10), [&] {
      return Column("bob", "state") != "backward" &&
             Column("alice", "state") != "backward";
    });
  };
  // Another input is none.
  EXPECT_THAT(ctx.Grad({autograd::Sum(x)}, {w, constant}),
              Fails(StatusCode::kInvalidArgument, "does not require grad"));
  EXPECT_TRUE(dropped());
  EXPECT_THAT(ctx.Grad({autograd::Sum(x)}, {w, Variable()}),
              Fails(StatusCode::kInvalidArgument, "grad: input 1"));
  EXPECT_TRUE(dropped());
  // The marking fails.
  EXPECT_THAT(ctx.Grad({autograd::Sum(stale)}, {w}),
              Fails(StatusCode::kInvalidArgument, "one context"));
  EXPECT_TRUE(dropped());
  EXPECT_EQ(Column("bob", "state"), "open");
  EXPECT_THAT(ctx.Backward(autograd::Sum(x)), IsOk());
}

TEST_P(GradTest, OfHigherOrderIsRefused) {
  Variable x = Leaf(2);
  Context ctx(agent());
  EXPECT_THAT(ctx.Grad({autograd::Sum(x)}, {x}, {}, {.create_graph = true}),
              Fails(StatusCode::kUnimplemented, "higher order"));
  EXPECT_THAT(ctx.Backward(autograd::Sum(x), {.create_graph = true}),
              Fails(StatusCode::kUnimplemented, "create_graph"));
}

TEST_P(GradTest, MovesToTheGradOfEachParameterAtItsOwner) {
  RRef<Variable> w = ParameterAt("bob", 3);
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable here = *w.Fetch(ctx).Await();
  Variable loss =
      autograd::Sum(*agent().Async<&Multiply>("carol", ctx, here, x).Await());
  ASSERT_THAT(ctx.Backward(loss, {.retain_graph = true}), IsOk());
  EXPECT_FALSE(GradAt("bob", w).defined());
  ASSERT_THAT(ctx.MoveToGrad().Await(), IsOk());
  EXPECT_EQ(First(GradAt("bob", w)), 2);
  EXPECT_EQ(First(x.grad()), 3);
  EXPECT_TRUE(ctx.Gradients().empty());
  // Nothing is left to move; what comes after is added.
  ASSERT_THAT(ctx.MoveToGrad().Await(), IsOk());
  EXPECT_EQ(First(GradAt("bob", w)), 2);
  ASSERT_THAT(ctx.Backward(loss), IsOk());
  ASSERT_THAT(ctx.MoveToGrad().Await(), IsOk());
  EXPECT_EQ(First(GradAt("bob", w)), 4);
  EXPECT_EQ(First(x.grad()), 6);
  ASSERT_THAT(ctx.Release().Await(), IsOk());
  EXPECT_THAT(ctx.MoveToGrad().Await(), Fails(StatusCode::kAborted, "is over"));
}

}  // namespace
}  // namespace baton::dist
