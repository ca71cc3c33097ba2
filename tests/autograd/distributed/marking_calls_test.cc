// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

// Which calls a backward makes, over each transport.
namespace baton::dist {
namespace {

using testing::IsOk;
using Route = std::vector<std::string>;

class MarkingCallsTest : public ThreeWorkers {
 protected:
  MarkingCallsTest() : ThreeWorkers(nullptr) {}
  // Made by all workers, of those that have ended.
  uint64_t Calls(const std::string& method) {
    uint64_t calls = 0;
    for (const char* worker : {"alice", "bob", "carol"}) {
      for (const auto& stats : cluster_.at(worker).GetDebugInfo().methods) {
        if (!stats.incoming && stats.method == method) calls += stats.calls;
      }
    }
    return calls;
  }
  // All that a backward has made are counted.
  bool Settles(const std::string& method, uint64_t calls) {
    return testing::Within(std::chrono::seconds(10),
                           [&] { return Calls(method) >= calls; }) &&
           Calls(method) == calls;
  }
  // x^(2^n), n the workers of the route and bob.
  void Step(double value, const Route& route,
            const BackwardOptions& options = {}) {
    Variable x = Leaf(value), twin = Leaf(value);
    Context ctx(agent());
    auto y = agent().Async<&Travel>("bob", ctx, x, route).Await();
    ASSERT_THAT(y, IsOk());
    ASSERT_THAT(ctx.Backward(autograd::Sum(*y), options), IsOk());
    Variable z = twin;
    for (size_t i = 0; i <= route.size(); ++i) z = z * z;
    autograd::Sum(z).Backward();
    EXPECT_TRUE(ops::BitEqual(ctx.GradientOf(x), twin.grad()));
  }
};
INSTANTIATE_TEST_SUITE_P(, MarkingCallsTest, testing::kTransports,
                         testing::TransportName);

TEST_P(MarkingCallsTest, FromTheSecondStepOnNoneMarks) {
  Step(1.1, {"carol"});
  // alice of bob, bob of carol, carol of bob, bob of alice.
  EXPECT_TRUE(Settles("MarkGraph", 4)) << Calls("MarkGraph");
  for (int i = 0; i < 10; ++i) Step(1.1 + i, {"carol"});
  EXPECT_TRUE(Settles("FinishBackward", 2 * 11));
  EXPECT_TRUE(Settles("TakeGradient", 4 * 11));
  EXPECT_EQ(Calls("MarkGraph"), 4u);
}

TEST_P(MarkingCallsTest, EachFormOfTheGraphIsMarkedOnce) {
  for (int i = 0; i < 3; ++i) {
    Step(1.5, {"carol"});
    Step(1.5, {});
    Step(1.5, {"carol", "bob"});
  }
  EXPECT_TRUE(Settles("MarkGraph", 4 + 2 + 6)) << Calls("MarkGraph");
}

TEST_P(MarkingCallsTest, FastBackwardsNeverMark) {
  for (int i = 0; i < 3; ++i)
    Step(1.5, {"carol"}, {.markings = Markings::kFast});
  EXPECT_TRUE(Settles("TakeGradient", 4 * 3));
  EXPECT_EQ(Calls("MarkGraph"), 0u);
}

TEST_P(MarkingCallsTest, BackwardsOverOneGraphMarkItOnce) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable loss =
      autograd::Sum(*agent().Async<&Multiply>("bob", ctx, x, x).Await());
  for (int i = 1; i <= 5; ++i) {
    ASSERT_THAT(ctx.Backward(loss, {.retain_graph = true}), IsOk());
    EXPECT_EQ(First(ctx.GradientOf(x)), 4 * i);
  }
  EXPECT_TRUE(Settles("MarkGraph", 2)) << Calls("MarkGraph");
}

}  // namespace
}  // namespace baton::dist
