// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"

// Many contexts, passes and calls at a time.
namespace baton::dist {
namespace {

using testing::IsOk;

// A trainer's step at whatever worker is asked: forward at the weights that
// `scale` names, backward, and their gradient.
absl::StatusOr<Tensor> Train(rpc::CallContext& call, RRef<Scale> scale,
                             double input) {
  Context ctx(call.agent());
  ASSIGN_OR_RETURN(Variable y,
                   scale.Async<&Scale::Forward>(ctx, Leaf(input)).Await());
  RETURN_IF_ERROR(ctx.Backward(autograd::Sum(y)));
  return scale.Async<&Scale::Gradient>(ctx).Await();
}

// Fetches what lives at a third worker, and goes on with it.
absl::StatusOr<Variable> FetchAndMultiply(rpc::CallContext& call,
                                          RRef<Variable> there,
                                          const Variable& x) {
  ASSIGN_OR_RETURN(Variable value, there.Fetch(call).Await());
  return value * x;
}

class TrainingStressTest : public ThreeWorkers {
 protected:
  TrainingStressTest()
      : ThreeWorkers([](rpc::Registry& registry) {
          registry.AddFunction<&Train>().AddFunction<&FetchAndMultiply>();
        }) {}
};
INSTANTIATE_TEST_SUITE_P(, TrainingStressTest, testing::kTransports,
                         testing::TransportName);

TEST_P(TrainingStressTest, TwentyThreadsOnEachOfThreeWorkersTrainAtOne) {
  RRef<Scale> scale = MakeScale("bob", 3);
  std::vector<std::thread> threads;
  for (const char* worker : {"alice", "bob", "carol"}) {
    for (int t = 0; t < 20; ++t) {
      threads.emplace_back([&, worker, t] {
        for (int i = 0; i < 3; ++i) {
          auto gradient = agent().Async<&Train>(worker, scale, t + 0.5).Await();
          ASSERT_THAT(gradient, IsOk());
          EXPECT_EQ(First(*gradient), t + 0.5);
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(TrainingStressTest, OneContextTakesCallsOfManyThreads) {
  constexpr size_t kThreads = 8, kCalls = 10;
  Variable x = Leaf(2);
  Context ctx(agent());
  std::vector<Variable> results(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Variable sum = x * 0.0;
      for (size_t i = 0; i < kCalls; ++i) {
        auto y =
            agent()
                .Async<&Multiply>(rpc::Rank{static_cast<int>(i % 3)}, ctx, x, x)
                .Await();
        ASSERT_THAT(y, IsOk());
        sum = sum + *y;
      }
      results[t] = sum;
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(
      ctx.Backward(results,
                   std::vector<Tensor>(kThreads, test::Put(Tensor::Ones({2})))),
      IsOk());
  EXPECT_EQ(First(ctx.GradientOf(x)), 4.0 * kThreads * kCalls);
}

TEST_P(TrainingStressTest, AThousandPassesOverOneGraphAddUp) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable loss =
      autograd::Sum(*agent().Async<&Multiply>("bob", ctx, x, x).Await());
  const BackwardOptions keep{.retain_graph = true};
  for (int i = 0; i < 1000; ++i) ASSERT_THAT(ctx.Backward(loss, keep), IsOk());
  EXPECT_EQ(First(ctx.GradientOf(x)), 4000);
}

TEST_P(TrainingStressTest, AThousandContextsLeaveNothing) {
  RRef<Scale> scale = MakeScale("bob", 3);
  for (int i = 0; i < 1000; ++i) {
    Context ctx(agent());
    ASSERT_THAT(scale.Async<&Scale::Forward>(ctx, Leaf(i)).Await(), IsOk());
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

TEST_P(TrainingStressTest, ManyResultsOfManyWorkersMeetInOneLoss) {
  Variable x = Leaf(1);
  Context ctx(agent());
  std::vector<RRef<Variable>> kept;
  for (int i = 0; i < 60; ++i) {
    kept.push_back(agent().Remote<&Multiply>(rpc::Rank{i % 3}, ctx, x, x));
  }
  Variable sum = x * 0.0;
  for (const RRef<Variable>& value : kept) {
    sum = sum + *value.Fetch(ctx).Await();
  }
  ASSERT_THAT(ctx.Backward(autograd::Sum(sum)), IsOk());
  EXPECT_EQ(First(ctx.GradientOf(x)), 120);
}

// A trainer, a parameter server and a third worker between the two.
TEST_P(TrainingStressTest, AThirdWorkerMayFetchWhatTheServerMade) {
  Variable x = Leaf(2), w = Leaf(3);
  Context ctx(agent());
  RRef<Variable> at_bob = agent().Remote<&Multiply>("bob", ctx, x, w);
  Variable y =
      *agent().Async<&FetchAndMultiply>("carol", ctx, at_bob, x).Await();
  RRef<Variable> again =
      agent().Remote<&FetchAndMultiply>("carol", ctx, at_bob, w);
  Variable z = *again.Fetch(ctx).Await();
  ASSERT_THAT(ctx.Backward(autograd::Sum(y + z)), IsOk());
  EXPECT_EQ(First(ctx.GradientOf(x)), 2 * 2 * 3 + 9);  // of x^2 w + x w^2
  EXPECT_EQ(First(ctx.GradientOf(w)), 4 + 2 * 2 * 3);
}

TEST(TrainingAlone, AClusterOfOneTrains) {
  testing::TrainingCluster cluster(1, &AddRemoteMath);
  Variable x = Leaf(2);
  Context ctx(cluster.alice());
  RRef<Scale> scale =
      *rpc::Create<Scale>(cluster.alice(), "alice", 3.0).Await();
  Variable y = *scale.Remote<&Scale::Forward>(ctx, x).Fetch(ctx).Await();
  Variable z = *cluster.alice().Async<&Multiply>("alice", ctx, y, y).Await();
  ASSERT_THAT(ctx.Backward(autograd::Sum(z)), IsOk());
  EXPECT_EQ(First(ctx.GradientOf(x)), 36);
  EXPECT_EQ(First(*scale.Async<&Scale::Gradient>(ctx).Await()), 24);
}

}  // namespace
}  // namespace baton::dist
