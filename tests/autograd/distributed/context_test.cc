// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "rpc/introspection.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

using ContextTest = ThreeWorkers;
INSTANTIATE_TEST_SUITE_P(, ContextTest, testing::kTransports,
                         testing::TransportName);

TEST_P(ContextTest, IdsAreUnique) {
  Context a(agent()), b(agent());
  EXPECT_NE(a.id(), b.id());
  EXPECT_EQ(a.id().root, "alice");
  EXPECT_EQ(OpenContexts(agent()).size(), 2u);
}

TEST_P(ContextTest, GradientsEqualThoseOfTheLocalGraph) {
  Variable a = Leaf(3), b = Leaf(5);
  Context ctx(agent());
  Variable product = *agent().Async<&Multiply>("bob", ctx, a, b).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(product * product)).ok());
  autograd::Sum((a * b) * (a * b)).Backward();
  EXPECT_TRUE(ops::BitEqual(ctx.GradientOf(a), a.grad()));
  EXPECT_TRUE(ops::BitEqual(ctx.GradientOf(b), b.grad()));
}

TEST_P(ContextTest, BothWorkersShowItWithItsGradients) {
  Variable a = Leaf(3), b = Leaf(5);
  Context ctx(agent());
  Variable product = *agent().Async<&Multiply>("bob", ctx, a, b).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(product)).ok());
  const auto column = [](const rpc::View& view, const std::string& name) {
    for (size_t i = 0; i < view.columns.size(); ++i) {
      if (view.columns[i].name == name) return view.rows.at(0).at(i);
    }
    return std::string("no such column");
  };
  const auto here = agent().GetDebugInfo().views;
  ASSERT_EQ(here.size(), 2u);
  EXPECT_EQ(here[0].name, "contexts");
  ASSERT_EQ(here[0].rows.size(), 1u);
  EXPECT_EQ(column(here[0], "context"), std::to_string(ctx.id().number));
  EXPECT_EQ(column(here[0], "creator"), "alice");
  EXPECT_EQ(column(here[0], "gradients"), "2");
  EXPECT_EQ(column(here[0], "gradient_bytes"),
            std::to_string(2 * a.tensor().nbytes()));
  EXPECT_EQ(column(here[0], "state"), "open");
  const auto there =
      *agent().Async<&rpc::Introspection::Describe>("bob").Await();
  ASSERT_EQ(there.views.size(), 2u);
  ASSERT_EQ(there.views[0].rows.size(), 1u);
  EXPECT_EQ(column(there.views[0], "creator"), "alice");
  EXPECT_EQ(column(there.views[0], "opened_by"), "alice");
  EXPECT_EQ(column(there.views[0], "gradient_bytes"), "0");
  EXPECT_EQ(column(there.views[0], "state"), "open");
}

TEST_P(ContextTest, ATraceHasTheCallsOfItsBackward) {
  const Variable x = Leaf(3);
  Context ctx(agent());
  const Variable y = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
  rpc::Tracer& tracer = *cluster_.at("bob").tracer();
  tracer.Start(100, rpc::Tracer::Clock::now() + std::chrono::seconds(60));
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  std::vector<std::string> served, made;
  for (const rpc::TraceEvent& event : tracer.Take().events) {
    EXPECT_TRUE(event.ok) << event.name;
    EXPECT_EQ(event.peer, "alice");
    (event.kind == rpc::TraceEvent::Kind::kServe ? served : made)
        .push_back(event.name);
  }
  EXPECT_THAT(served, UnorderedElementsAre("MarkGraph", "TakeGradient",
                                           "FinishBackward"));
  EXPECT_THAT(made, UnorderedElementsAre("MarkGraph", "TakeGradient"));
}

TEST_P(ContextTest, CallsToOneselfCount) {
  Variable a = Leaf(3), b = Leaf(5);
  Context ctx(agent());
  Variable product = *agent().Async<&Multiply>("alice", ctx, a, b).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(product)).ok());
  EXPECT_EQ(First(ctx.GradientOf(a)), 5);
}

TEST_P(ContextTest, WithoutAContextValuesArriveWithoutHistory) {
  Variable a = Leaf(3);
  Variable product = *agent().Async<&Multiply>("bob", a, a).Await();
  EXPECT_FALSE(product.requires_grad());
  EXPECT_EQ(First(product.tensor()), 9);
}

TEST_P(ContextTest, NothingIsRecordedWhereNothingRequiresGrad) {
  Variable a(test::Put(Tensor::Ones({2})));
  Context ctx(agent());
  Variable product = *agent().Async<&Multiply>("bob", ctx, a, a).Await();
  EXPECT_FALSE(product.requires_grad());
  EXPECT_TRUE(absl::IsInvalidArgument(ctx.Backward(autograd::Sum(product))));
}

TEST_P(ContextTest, OnlyTheResultMayRequireGrad) {
  RRef<Scale> scale = MakeScale("bob", 4);
  Context ctx(agent());
  Variable y =
      *scale.Async<&Scale::Forward>(ctx, test::Put(Tensor::Full({2}, 3)))
           .Await();
  EXPECT_TRUE(y.requires_grad());
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_EQ(First(*scale.Async<&Scale::Gradient>(ctx).Await()), 3);
  EXPECT_FALSE(*scale.Async<&Scale::HasGrad>().Await());
}

TEST_P(ContextTest, ListsKeepTheirEdgesApart) {
  std::vector<Variable> in = {Leaf(1), Variable(test::Put(Tensor::Ones({2}))),
                              Leaf(3)};
  Context ctx(agent());
  auto out = *agent().Async<&Spread>("bob", ctx, in).Await();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_FALSE(out[1].requires_grad());
  ASSERT_TRUE(ctx.Backward(autograd::Sum(out[0] + out[1])).ok());
  EXPECT_EQ(First(ctx.GradientOf(in[0])), 2);
  EXPECT_FALSE(ctx.GradientOf(in[2]).defined());
}

TEST_P(ContextTest, HandlersCallOnInTheSameContext) {
  Variable x = Leaf(1.5);
  Context ctx(agent());
  // alice -> bob -> carol -> alice -> bob: x^16
  Variable y =
      *agent()
           .Async<&Travel>("bob", ctx, x,
                           std::vector<std::string>{"carol", "alice", "bob"})
           .Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  Variable local = Leaf(1.5);
  Variable z = local;
  for (int i = 0; i < 4; ++i) z = z * z;
  autograd::Sum(z).Backward();
  EXPECT_TRUE(ops::BitEqual(ctx.GradientOf(x), local.grad()));
}

TEST_P(ContextTest, ManyRoundTripsAddUp) {
  Variable x = Leaf(1.001);
  Context ctx(agent());
  Variable y = *agent().Async<&PingPong>("bob", ctx, x, "alice", 8).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_NEAR(First(ctx.GradientOf(x)), 256 * std::pow(1.001, 255), 1e-2);
}

TEST_P(ContextTest, FetchedResultsCarryTheirGraph) {
  Variable a = Leaf(3), b = Leaf(5);
  Context ctx(agent());
  RRef<Variable> there = agent().Remote<&Multiply>("bob", ctx, a, b);
  Variable product = *there.Fetch(ctx).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(product)).ok());
  EXPECT_EQ(First(ctx.GradientOf(a)), 5);
}

TEST_P(ContextTest, AFutureMayStandForItsValue) {
  Variable x = Leaf(2);
  RRef<Scale> front = MakeScale("bob", 3), back = MakeScale("carol", 5);
  Context ctx(agent());
  Future<Variable> hidden = front.Async<&Scale::Forward>(ctx, x);
  Future<Variable> y = back.Async<&Scale::Forward>(ctx, hidden);
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*y.Await())).ok());
  EXPECT_EQ(First(ctx.GradientOf(x)), 15);
  EXPECT_EQ(First(*front.Async<&Scale::Gradient>(ctx).Await()), 10);
  EXPECT_EQ(First(*back.Async<&Scale::Gradient>(ctx).Await()), 6);
}

TEST_P(ContextTest, UnusedResultsGetNoGradientAndHangNothing) {
  Variable x = Leaf(2);
  RRef<Scale> used = MakeScale("bob", 3), unused = MakeScale("bob", 5);
  Context ctx(agent());
  Variable y = *used.Async<&Scale::Forward>(ctx, x).Await();
  ASSERT_TRUE(unused.Async<&Scale::Forward>(ctx, x).Await().ok());
  ASSERT_TRUE(unused.Async<&Scale::Forward>(ctx, y).Await().ok());
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_EQ(First(ctx.GradientOf(x)), 3);
  EXPECT_FALSE(unused.Async<&Scale::Gradient>(ctx).Await()->defined());
}

TEST_P(ContextTest, RepeatedBackwardsAccumulate) {
  Variable x = Leaf(2);
  RRef<Scale> scale = MakeScale("bob", 3);
  Context ctx(agent());
  Variable loss = autograd::Sum(*scale.Async<&Scale::Forward>(ctx, x).Await());
  BackwardOptions keep;
  keep.retain_graph = true;
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(ctx.Backward(loss, keep).ok());
  EXPECT_EQ(First(ctx.GradientOf(x)), 300);
  EXPECT_EQ(First(*scale.Async<&Scale::Gradient>(ctx).Await()), 200);
}

TEST_P(ContextTest, ContextsDoNotMix) {
  Variable x = Leaf(2);
  RRef<Scale> scale = MakeScale("bob", 3);
  Context a(agent()), b(cluster_.at("carol"));
  Variable y = *scale.Async<&Scale::Forward>(a, x).Await();
  ASSERT_TRUE(a.Backward(autograd::Sum(y)).ok());
  EXPECT_TRUE(scale.Async<&Scale::Gradient>(a).Await()->defined());
  EXPECT_FALSE(scale.Async<&Scale::Gradient>(b).Await()->defined());
}

TEST_P(ContextTest, ManyThreadsTrainAtOnce) {
  RRef<Scale> scale = MakeScale("bob", 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        Variable x = Leaf(t);
        Context ctx(agent());
        auto y = scale.Async<&Scale::Forward>(ctx, x).Await();
        ASSERT_TRUE(y.ok()) << y.status();
        absl::Status status = ctx.Backward(autograd::Sum(*y));
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(First(ctx.GradientOf(x)), 3);
        EXPECT_EQ(First(*scale.Async<&Scale::Gradient>(ctx).Await()), t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ContextTest, ErrorsOfRemoteNodesComeHome) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&BreakBackward>("bob", ctx, x).Await();
  absl::Status status = ctx.Backward(autograd::Sum(y));
  EXPECT_THAT(std::string(status.message()), HasSubstr("bob"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("broken on purpose"));
}

TEST_P(ContextTest, AFailedCallLeavesTheContextUsable) {
  Variable x = Leaf(2);
  Context ctx(agent());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      agent().Async<&Refuse>("bob", ctx, x).Await().status()));
  Variable y = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
  EXPECT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
}

TEST_P(ContextTest, ADeadWorkerFailsTheBackward) {
  Variable x = Leaf(2);
  {
    Context ctx(agent());
    Variable y = *agent().Async<&Multiply>("carol", ctx, x, x).Await();
    cluster_.Kill("carol");
    absl::Status status = ctx.Backward(autograd::Sum(y));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("carol"));
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

TEST_P(ContextTest, TheDeathOfTheRootEndsItsContexts) {
  Variable x = Leaf(2);
  Context ctx(cluster_.at("carol"));
  ASSERT_TRUE(
      cluster_.at("carol")
          .Async<&Travel>("bob", ctx, x, std::vector<std::string>{"alice"})
          .Await()
          .ok());
  EXPECT_EQ(OpenContexts(cluster_.at("bob")).size(), 1u);
  EXPECT_EQ(OpenContexts(agent()).size(), 1u);
  cluster_.Kill("carol");
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

TEST_P(ContextTest, ItsEndEndsItOnEveryWorkerItReached) {
  Variable x = Leaf(2);
  {
    Context ctx(agent());
    ASSERT_TRUE(
        agent()
            .Async<&Travel>("bob", ctx, x, std::vector<std::string>{"carol"})
            .Await()
            .ok());
    EXPECT_EQ(OpenContexts(cluster_.at("carol")).size(), 1u);
    EXPECT_TRUE(ctx.Release().Await().ok());
    EXPECT_TRUE(OpenContexts(cluster_.at("carol")).empty());
    // From then on its calls are refused.
    EXPECT_FALSE(agent().Async<&Multiply>("bob", ctx, x, x).Await().ok());
    EXPECT_FALSE(ctx.Backward(autograd::Sum(x)).ok());
  }
  EXPECT_TRUE(OpenContexts(cluster_.at("bob")).empty());
}

// Micro-batch by micro-batch, at whatever worker.
TEST_P(ContextTest, GradientsOfSmallFloatsAddInF32) {
  RRef<Scale> scale = *rpc::Create<Scale>(agent(), "bob", 1.0).Await();
  ASSERT_TRUE(scale.Async<&Scale::Lower>(DType::kBF16).Await().ok());
  Context ctx(agent());
  const auto pass = [&](double value) {
    const Tensor x =
        test::Put(Tensor::Full({2}, value, {.dtype = DType::kBF16}));
    Variable y = *scale.Async<&Scale::Forward>(ctx, Variable(x)).Await();
    return ctx.Backward(autograd::Sum(y));
  };
  ASSERT_TRUE(pass(256).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pass(1).ok());
  const Tensor gradient = *scale.Async<&Scale::Gradient>(ctx).Await();
  EXPECT_EQ(gradient.dtype(), DType::kF32);
  EXPECT_EQ(First(gradient), 259);
}

TEST_P(ContextTest, WriteToGradAddsToTheLeaves) {
  Variable x = Leaf(2);
  Context ctx(agent());
  ASSERT_TRUE(ctx.Backward(autograd::Sum(x * 3.0)).ok());
  EXPECT_FALSE(x.grad().defined());
  ctx.WriteToGrad();
  ctx.WriteToGrad();
  EXPECT_EQ(First(x.grad()), 6);
  EXPECT_EQ(ctx.Gradients().size(), 1u);
}

TEST_P(ContextTest, ALocalBackwardOverARemoteEdgeSaysWhatToDo) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
  try {
    autograd::Sum(y).Backward();
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("dist::Context"));
  }
}

}  // namespace
}  // namespace baton::dist
