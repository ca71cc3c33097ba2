// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "tests/autograd/distributed/engine_net.h"
#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using ::testing::HasSubstr;

TEST_F(EngineTest, SendsGradientsThereAndBack) {
  Variable x = Leaf(2), w = Leaf(3);
  Variable there = Move("alice", "bob", x);
  Variable back = Move("bob", "alice", there * w);
  ASSERT_TRUE(Backward(autograd::Sum(back * x)).ok());  // sum(w x^2)
  EXPECT_EQ(GradientAt("alice", x), 12);
  EXPECT_EQ(GradientAt("bob", w), 4);
  EXPECT_FALSE(x.grad().defined());
}

// What is computed elsewhere of a value, and the gradient, are on the CPU.
TEST_F(EngineTest, GradientsComeToTheDeviceOfWhatWasSent) {
  Move("alice", "bob", Leaf(1));  // who so knows the context
  Variable w(test::Put(Tensor::Full({2, 2}, 3)), true);
  Variable x(test::Put(Tensor::Full({2, 2}, 2)), true);
  Variable home = Move("bob", "alice", w * x);
  EXPECT_TRUE(home.tensor().device().is_cpu());
  const absl::Status status = Backward(autograd::Sum(home * home));
  ASSERT_TRUE(status.ok()) << status;
  const Tensor gradient =
      net_.StateAt("bob", context_->id())->GradientOf(w).Dense();  // 2 w x^2
  EXPECT_EQ(gradient.device(), test::TestDevice());
  EXPECT_EQ(First(gradient), 24);
}

TEST_F(EngineTest, PassesThroughThreeWorkersAndReenters) {
  Variable x = Leaf(2), w = Leaf(3), v = Leaf(5);
  Variable at_bob = Move("alice", "bob", x) * w;
  Variable at_carol = Move("bob", "carol", at_bob) * v;
  Variable again_at_bob = Move("carol", "bob", at_carol) * w;
  Variable home = Move("bob", "alice", again_at_bob);
  ASSERT_TRUE(Backward(autograd::Sum(home)).ok());
  EXPECT_EQ(GradientAt("alice", x), 45);  // w^2 v
  EXPECT_EQ(GradientAt("bob", w), 60);    // 2 w v x
  EXPECT_EQ(GradientAt("carol", v), 18);  // w^2 x
}

TEST_F(EngineTest, UnusedValuesNeitherHangNorGetGradients) {
  Variable x = Leaf(2), w = Leaf(3), unused = Leaf(7);
  Variable there = Move("alice", "bob", x);
  Variable used = Move("bob", "alice", there * w);
  Move("bob", "alice", there * unused);
  Move("alice", "carol", x * x);
  ASSERT_TRUE(Backward(autograd::Sum(used)).ok());
  EXPECT_EQ(GradientAt("bob", w), 2);
  EXPECT_EQ(GradientAt("bob", unused), -1);
  EXPECT_EQ(GradientAt("alice", x), 3);
}

TEST_F(EngineTest, OneOfTheValuesOfAMessageMayBeUnused) {
  Variable x = Leaf(2), y = Leaf(3);
  auto moved = net_.Move("alice", "bob", context_->id(), {x, y});
  Variable home = Move("bob", "alice", (*moved)[1] * 4.0);
  ASSERT_TRUE(Backward(autograd::Sum(home)).ok());
  EXPECT_EQ(GradientAt("alice", x), -1);
  EXPECT_EQ(GradientAt("alice", y), 4);
}

TEST_F(EngineTest, RootsMayReachDisjointEdges) {
  Variable x = Leaf(2), w = Leaf(3), v = Leaf(5);
  Variable from_bob = Move("bob", "alice", Move("alice", "bob", x) * w);
  Variable from_carol = Move("carol", "alice", Move("alice", "carol", x) * v);
  ASSERT_TRUE(net_.at("alice")
                  .Backward(context_, {from_bob, from_carol},
                            {Tensor::Ones({2, 2}), Tensor::Full({2, 2}, 10)},
                            {})
                  .Await()
                  .ok());
  EXPECT_EQ(GradientAt("alice", x), 53);
  EXPECT_EQ(GradientAt("bob", w), 2);
  EXPECT_EQ(GradientAt("carol", v), 20);
}

TEST_F(EngineTest, RetainedGraphsAccumulateAndFreedOnesAreAnError) {
  Variable x = Leaf(2), w = Leaf(3);
  Variable loss =
      autograd::Sum(Move("bob", "alice", Move("alice", "bob", x) * w));
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(Backward(loss, true).ok());
    EXPECT_EQ(GradientAt("bob", w), 2 * i);
  }
  ASSERT_TRUE(Backward(loss).ok());
  absl::Status again = Backward(loss);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(std::string(again.message()), HasSubstr("backward"));
}

TEST_F(EngineTest, AnErrorInARemoteNodeNamesTheWorkerAndEndsThePass) {
  Variable x = Leaf(2);
  Variable there = Move("alice", "bob", x) * 2.0;
  there.AddHook([](const Tensor&) -> Tensor { Fail("hook", "no such luck"); });
  Variable home = Move("bob", "alice", there);
  for (int i = 0; i < 20; ++i) {
    absl::Status status = Backward(autograd::Sum(home), true);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("worker bob"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("no such luck"));
  }
  Variable w = Leaf(3);
  EXPECT_TRUE(Backward(autograd::Sum(Move("bob", "alice", w * 1.0))).ok());
  EXPECT_EQ(GradientAt("bob", w), 1);
}

TEST_F(EngineTest, ADeadPeerIsAnError) {
  Variable x = Leaf(2);
  Variable home = Move("carol", "alice", Move("alice", "carol", x) * 2.0);
  net_.Kill("carol");
  absl::Status status = Backward(autograd::Sum(home));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("carol"));
  net_.Kill("");
}

TEST_F(EngineTest, AMissedDeadlineNamesTheEdgeAndTheWorker) {
  Variable x = Leaf(2);
  Variable home = Move("bob", "alice", Move("alice", "bob", x) * 2.0);
  net_.LoseGradientsTo("bob");
  absl::Status status = Backward(autograd::Sum(home));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("worker bob waits for the gradient of edge 1 from worker "
                "alice"));
}

// A value whose backward stands still until it may go on, and how often that
// runs at once.
struct Gate {
  Variable Of(const Variable& x) {
    Variable y = x * 1.0;
    y.AddHook([this](const Tensor&) {
      most = std::max(most.load(), ++inside);
      reached.Set(absl::OkStatus());
      go.future().Await().IgnoreError();
      --inside;
      return Tensor();
    });
    return y;
  }
  Promise<void> go, reached;
  std::atomic<int> inside{0}, most{0};
};

TEST_F(EngineTest, ASecondBackwardAtOnceOfTheSameParameterIsRefused) {
  Variable x = Leaf(2);
  Gate gate;
  Future<void> first =
      net_.at("alice").Backward(context_, {autograd::Sum(gate.Of(x))}, {}, {});
  ASSERT_TRUE(gate.reached.future().Await().ok());
  absl::Status second = Backward(autograd::Sum(x * 2.0));
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr("the parameter f32"));
  gate.go.Set(absl::OkStatus());
  EXPECT_TRUE(first.Await().ok());
  EXPECT_TRUE(Backward(autograd::Sum(x * 2.0)).ok());
}

TEST_F(EngineTest, TheRefusalNamesTheWorkerOfTheSharedParameter) {
  Variable x = Leaf(2), y = Leaf(3), w = Leaf(5);
  Gate gate;
  Variable one = Move("bob", "alice", gate.Of(Move("alice", "bob", x) * w));
  Variable two = Move("bob", "alice", Move("alice", "bob", y) * w);
  Future<void> first =
      net_.at("alice").Backward(context_, {autograd::Sum(one)}, {}, {});
  ASSERT_TRUE(gate.reached.future().Await().ok());
  const Variable loss = autograd::Sum(two);
  absl::Status second = Backward(loss);
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr("worker bob"));
  gate.go.Set(absl::OkStatus());
  ASSERT_TRUE(first.Await().ok());
  EXPECT_TRUE(Backward(loss).ok());
  EXPECT_EQ(GradientAt("bob", w), 5);  // x + y
}

TEST_F(EngineTest, BackwardsThatShareNothingRunBesideEachOther) {
  Variable x = Leaf(2), y = Leaf(3), w = Leaf(5), v = Leaf(7);
  Gate gate;
  Variable one = Move("bob", "alice", gate.Of(Move("alice", "bob", x) * w));
  Variable two = Move("bob", "alice", Move("alice", "bob", y) * v);
  Future<void> first =
      net_.at("alice").Backward(context_, {autograd::Sum(one)}, {}, {});
  ASSERT_TRUE(gate.reached.future().Await().ok());
  ASSERT_TRUE(Backward(autograd::Sum(two)).ok());
  EXPECT_EQ(GradientAt("bob", v), 3);
  EXPECT_EQ(GradientAt("alice", y), 7);
  EXPECT_EQ(GradientAt("bob", w), -1);
  gate.go.Set(absl::OkStatus());
  ASSERT_TRUE(first.Await().ok());
  EXPECT_EQ(GradientAt("bob", w), 2);
}

TEST_F(EngineTest, ManyBackwardsOfOneContextRunAtOnce) {
  constexpr size_t kPasses = 30;
  std::vector<Variable> leaves;
  std::vector<Future<void>> passes;
  for (size_t i = 0; i < kPasses; ++i) {
    leaves.push_back(Leaf(static_cast<double>(i)));
    Variable there = Move("alice", "bob", leaves.back());
    Variable home = Move("bob", "alice", there * there);
    passes.push_back(
        net_.at("alice").Backward(context_, {autograd::Sum(home)}, {}, {}));
  }
  EXPECT_TRUE(WaitAll(passes).Await().ok());
  for (size_t i = 0; i < kPasses; ++i) {
    EXPECT_EQ(GradientAt("alice", leaves[i]), 2 * static_cast<double>(i));
  }
}

// Carol breaks while a node of another worker runs.
class RetryTest : public EngineTest,
                  public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(, RetryTest, ::testing::Values("alice", "bob"));

TEST_P(RetryTest, OfAFailedBackwardRunsNoNodeThatStillRuns) {
  Gate gate;
  std::atomic<bool> broken{true};
  Variable x = Leaf(2), y = Leaf(3);
  const bool here = GetParam() == std::string("alice");
  Variable slow = here ? gate.Of(x)
                       : Move("bob", "alice", gate.Of(Move("alice", "bob", x)));
  Variable fragile = Move("alice", "carol", y) * 1.0;
  fragile.AddHook([&](const Tensor&) {
    // Not before the other one is on its way.
    gate.reached.future().Await().IgnoreError();
    if (broken) Fail("fragile", "broke");
    return Tensor();
  });
  const Variable from_carol = Move("carol", "alice", fragile);
  // The edge from carol first, so that alice's own node does not hold it up.
  const std::vector<Variable> roots = {from_carol, slow};
  const std::vector<Tensor> ones(2, Tensor::Ones({2, 2}));
  const auto run = [&] {
    return net_.at("alice").Backward(context_, roots, ones,
                                     {.retain_graph = true});
  };
  Future<void> first = run();
  ASSERT_TRUE(gate.reached.future().Await().ok());
  Promise<void> retried;
  first.OnReady([&](const absl::Status&) {
    broken = false;
    run().OnReady([&](const absl::Status& status) { retried.Set(status); });
  });
  // The share of the failed backward is over there but for the node that runs.
  EXPECT_TRUE(Eventually([&] {
    return !net_.StateAt(GetParam(), context_->id())->FindPass(PassId{1}).ok();
  }));
  EXPECT_FALSE(first.ready());
  gate.go.Set(absl::OkStatus());
  EXPECT_THAT(std::string(first.Await().message()), HasSubstr("broke"));
  const absl::Status second = retried.future().Await();
  EXPECT_TRUE(second.ok()) << second;
  EXPECT_EQ(gate.most, 1);
}

// A node that holds `token` for as long as it is in a graph.
Variable Holding(const Variable& x, const std::shared_ptr<int>& token) {
  Variable y = x * 2.0;
  y.AddHook([token](const Tensor&) { return Tensor(); });
  return y;
}

TEST_F(EngineTest, ABackwardThatIsOverKeepsNoGraph) {
  auto token = std::make_shared<int>();
  Variable x = Leaf(2);
  Variable at_bob = Move("alice", "bob", x) * 2.0;
  Variable loss = Holding(Move("bob", "alice", at_bob), token);
  const std::vector<Tensor> ones = {Tensor::Ones({2, 2})};
  const auto runs = [&](const char* worker) {
    const auto state = net_.StateAt(worker, context_->id());
    return state->summary().backward_runs;
  };
  ASSERT_TRUE(
      net_.at("alice").Backward(context_, {loss}, ones, {}).Await().ok());
  EXPECT_FALSE(runs("alice"));
  EXPECT_FALSE(runs("bob"));
  loss = Variable();
  // The thread that fed the loss may be on its way out with it.
  EXPECT_TRUE(Eventually([&] { return token.use_count() == 1; }));
}

TEST_F(EngineTest, AFailedBackwardIsOver) {
  Variable there = Move("alice", "bob", Leaf(2)) * 2.0;
  there.AddHook([](const Tensor&) -> Tensor { Fail("hook", "no such luck"); });
  Variable home = Move("bob", "alice", there);
  ASSERT_FALSE(Backward(autograd::Sum(home)).ok());
  EXPECT_TRUE(Eventually([&] {
    return !net_.StateAt("alice", context_->id())->summary().backward_runs &&
           !net_.StateAt("bob", context_->id())->summary().backward_runs;
  }));
}

TEST_F(EngineTest, BadRootsAreRefused) {
  Variable x = Leaf(2);
  auto refused = [&](std::vector<Variable> roots, std::vector<Tensor> grads) {
    return absl::IsInvalidArgument(
        net_.at("alice").Backward(context_, roots, grads, {}).Await());
  };
  EXPECT_TRUE(refused({}, {}));
  EXPECT_TRUE(refused({Variable()}, {}));
  EXPECT_TRUE(refused({Variable(Tensor::Ones({1}))}, {}));
  EXPECT_TRUE(refused({x}, {}));
  EXPECT_TRUE(refused({x}, {Tensor::Ones({3})}));
  EXPECT_TRUE(refused({x}, {Tensor(), Tensor()}));
}

TEST_F(EngineTest, GarbageFromTheWireIsRefused) {
  EXPECT_FALSE(net_.at("bob").Open(Worker("eve"), "").ok());
  EXPECT_FALSE(net_.at("bob").Open(Worker("eve"), "\x04\xff\xff\xff").ok());
  MarkRequest mark;
  mark.pass.context = context_->id();
  mark.pass.pass = PassId{1};
  mark.edges = {99};
  EXPECT_FALSE(net_.at("bob").OnMark("eve", mark).Await().ok());
  Variable x = Leaf(2);
  ASSERT_TRUE(net_.Move("alice", "bob", context_->id(), {x}).ok());
  mark.edges = {1};
  auto stolen = net_.at("alice").OnMark("eve", mark).Await();
  EXPECT_TRUE(absl::IsNotFound(stolen.status()));
  ASSERT_TRUE(net_.at("alice").OnMark("bob", mark).Await().ok());
  GradientMessage gradient;
  gradient.context = context_->id();
  gradient.pass = PassId{1};
  gradient.edge = EdgeId{1};
  gradient.present = {1};
  EXPECT_FALSE(net_.at("alice").OnGradient("bob", gradient).ok());
  gradient.grads = {Tensor::Ones({3})};
  EXPECT_FALSE(net_.at("alice").OnGradient("bob", gradient).ok());
  gradient.present = {0, 0};
  EXPECT_FALSE(net_.at("alice").OnGradient("bob", gradient).ok());
}

TEST_F(EngineTest, ManyContextsRunAtOnce) {
  constexpr size_t kContexts = 30;
  std::vector<std::shared_ptr<ContextState>> contexts;
  std::vector<Variable> leaves;
  std::vector<Future<void>> passes;
  for (size_t i = 0; i < kContexts; ++i) {
    contexts.push_back(net_.at("alice").NewContext());
    leaves.push_back(Leaf(static_cast<double>(i)));
    const ContextId& id = contexts.back()->id();
    Variable there = (*net_.Move("alice", "bob", id, {leaves.back()}))[0];
    Variable home = (*net_.Move("bob", "alice", id, {there * there}))[0];
    passes.push_back(net_.at("alice").Backward(contexts.back(),
                                               {autograd::Sum(home)}, {}, {}));
  }
  EXPECT_TRUE(WaitAll(passes).Await().ok());
  for (size_t i = 0; i < kContexts; ++i) {
    EXPECT_EQ(First(contexts[i]->GradientOf(leaves[i]).Dense()),
              2 * static_cast<double>(i));
    EXPECT_TRUE(net_.at("alice").Release(contexts[i]->id()).Await().ok());
  }
}

}  // namespace
}  // namespace baton::dist
