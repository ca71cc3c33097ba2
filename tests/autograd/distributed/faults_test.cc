// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/shown_time.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"

// What goes wrong in a context, and that nothing of it stays behind.
namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::Fails;
using ::testing::HasSubstr;
using testing::IsOk;
using Route = std::vector<std::string>;

std::atomic<bool> broken{false};

// Doubles; its backward fails while `broken`.
Variable Fragile(const Variable& x) {
  Variable y = x * 2.0;
  y.AddHook([](const Tensor&) -> Tensor {
    if (broken) Fail("fragile", "broke");
    return Tensor();
  });
  return y;
}

// Where a backward stands still, for at most nine seconds.
struct Halt {
  Promise<void> reached;
  Promise<void> opened;
};
std::shared_ptr<Halt> halt;

Variable Halting(const Variable& x) {
  Variable y = x * 1.0;
  y.AddHook([here = halt](const Tensor&) {
    here->reached.Set(absl::OkStatus());
    here->opened.future().Await(std::chrono::seconds(9)).IgnoreError();
    return Tensor();
  });
  return y;
}

// Fills all handler threads of a worker; a wait that Await would not count.
struct Work {
  static constexpr int kThreads = 2;  // testing::ClusterOptions
  std::atomic<int> busy{0};
  Promise<void> all_busy;
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
};
std::shared_ptr<Work> work;

bool Compute() {
  const auto mine = work;
  if (++mine->busy == Work::kThreads) mine->all_busy.Set(absl::OkStatus());
  return mine->ended.wait_for(std::chrono::seconds(9)) ==
         std::future_status::ready;
}

int Throw(const Variable&) { throw std::runtime_error("thrown"); }

// A step of its own at the worker that serves a call of another context.
absl::StatusOr<double> OwnStep(rpc::CallContext& call, const Variable& x) {
  Variable w = Leaf(5);
  Context own(call.agent());
  ASSIGN_OR_RETURN(
      Variable y,
      call.agent().Async<&Multiply>("carol", own, w, x.Detach()).Await());
  RETURN_IF_ERROR(own.Backward(autograd::Sum(y)));
  return First(own.GradientOf(w));
}

class FaultsTest : public ThreeWorkers {
 protected:
  FaultsTest()
      : ThreeWorkers([](rpc::Registry& registry) {
          registry.AddFunction<&Fragile>()
              .AddFunction<&Halting>()
              .AddFunction<&Compute>()
              .AddFunction<&Throw>()
              .AddFunction<&OwnStep>();
        }) {
    broken = false;
    halt = std::make_shared<Halt>();
    work = std::make_shared<Work>();
  }
  ~FaultsTest() override { halt->opened.Set(absl::OkStatus()); }
  // One that stands still at bob.
  absl::Status HaltedBackward(std::chrono::milliseconds timeout) {
    Context ctx(agent());
    Variable y = *agent().Async<&Halting>("bob", ctx, Leaf(2)).Await();
    return ctx.Backward(autograd::Sum(y), {.timeout = timeout});
  }
};

// A context that bob has a share of and that ends while bob is busy.
class BusyFaultsTest : public FaultsTest {
 protected:
  void SetUp() override {
    Variable x = Leaf(2);
    Context ctx(agent());
    ASSERT_THAT(agent().Async<&Multiply>("bob", ctx, x, x).Await(), IsOk());
    for (int i = 0; i < Work::kThreads; ++i) {
      computed_.push_back(cluster_.at("carol").Async<&Compute>("bob"));
    }
    ASSERT_THAT(work->all_busy.future().Await(), IsOk());
    agent().set_default_timeout(kShort);
    released_ = ctx.Release();
    // A call like the release, but with the default time, is over.
    EXPECT_THAT(agent().Async<&Multiply>("bob", x, x).Await(),
                Fails(StatusCode::kDeadlineExceeded, "bob"));
    EXPECT_FALSE(released_.ready());
  }
  static constexpr std::chrono::milliseconds kShort{50};
  std::vector<Future<bool>> computed_;
  Future<void> released_;
};
INSTANTIATE_TEST_SUITE_P(, BusyFaultsTest, testing::kTransports,
                         testing::TransportName);
INSTANTIATE_TEST_SUITE_P(, FaultsTest, testing::kTransports,
                         testing::TransportName);

TEST_P(FaultsTest, FiftyBackwardsFailAndFiftySucceed) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Fragile>("bob", ctx, x).Await();
  Variable loss =
      autograd::Sum(*agent().Async<&Multiply>("carol", ctx, y, y).Await());
  const BackwardOptions keep{.retain_graph = true};
  broken = true;
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(ctx.Backward(loss, keep),
                Fails(StatusCode::kInvalidArgument, "[fragile] broke"));
  }
  EXPECT_FALSE(ctx.GradientOf(x).defined());
  broken = false;
  for (int i = 1; i <= 50; ++i) {
    ASSERT_THAT(ctx.Backward(loss, keep), IsOk());
    EXPECT_EQ(First(ctx.GradientOf(x)), 16 * i);
  }
}

TEST_P(FaultsTest, AnErrorThreeHopsAwayNamesItsWorker) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Travel>("bob", ctx, x, Route{"carol"}).Await();
  Variable z = *agent().Async<&BreakBackward>("carol", ctx, y).Await();
  Variable home = *agent().Async<&Multiply>("bob", ctx, z, z).Await();
  absl::Status status = ctx.Backward(autograd::Sum(home));
  EXPECT_THAT(std::string(status.message()), HasSubstr("carol"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("broken on purpose"));
}

TEST_P(FaultsTest, AWorkerThatDiesOnTheWayIsNamed) {
  Variable x = Leaf(2);
  {
    Context ctx(agent());
    Variable y = *agent().Async<&Travel>("bob", ctx, x, Route{"carol"}).Await();
    cluster_.Kill("carol");
    absl::Status status = ctx.Backward(autograd::Sum(y));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("carol"));
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
  Context next(agent());
  Variable y = *agent().Async<&Multiply>("bob", next, x, x).Await();
  EXPECT_THAT(next.Backward(autograd::Sum(y)), IsOk());
}

TEST_P(FaultsTest, AWorkerThatDiesDuringTheBackwardFailsIt) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Halting>("carol", ctx, x).Await();
  Future<void> pass = ctx.BackwardAsync({autograd::Sum(y)});
  ASSERT_THAT(halt->reached.future().Await(), IsOk());
  // Its own shutdown waits for what runs there.
  std::thread killer([&] { cluster_.Kill("carol"); });
  absl::Status status = pass.Await(std::chrono::seconds(8));
  halt->opened.Set(absl::OkStatus());
  killer.join();
  EXPECT_THAT(status, Fails(StatusCode::kUnavailable, "carol"));
}

TEST_P(FaultsTest, AReleaseEndsABackwardThatRuns) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Halting>("bob", ctx, x).Await();
  Future<void> pass = ctx.BackwardAsync({autograd::Sum(y)});
  ASSERT_THAT(halt->reached.future().Await(), IsOk());
  Future<void> released = ctx.Release();
  EXPECT_THAT(pass.Await(std::chrono::seconds(8)),
              Fails(StatusCode::kAborted, "is over"));
  halt->opened.Set(absl::OkStatus());
  EXPECT_THAT(released.Await(), IsOk());
  EXPECT_FALSE(ctx.GradientOf(x).defined());
}

TEST_P(BusyFaultsTest, AReleaseReachesAWorkerWhenItHasAThreadAgain) {
  work->end.set_value();
  EXPECT_THAT(released_.Await(), IsOk());
  EXPECT_TRUE(OpenContexts(cluster_.at("bob")).empty());
  for (const auto& computed : computed_) EXPECT_THAT(computed.Await(), IsOk());
}

TEST_P(BusyFaultsTest, AReleaseEndsWithTheWorkerThatItIsFor) {
  std::thread killer([&] { cluster_.Kill("bob"); });
  EXPECT_THAT(released_.Await(std::chrono::seconds(8)), IsOk());
  work->end.set_value();
  killer.join();
}

TEST_P(FaultsTest, ADeadlineNamesWhatWasWaitedForAndWhere) {
  // A busy machine may need more than the first time to come to bob.
  std::chrono::milliseconds timeout{150};
  absl::Status status = HaltedBackward(timeout);
  while (!halt->reached.future().ready() && timeout < std::chrono::seconds(5))
    status = HaltedBackward(timeout *= 4);
  halt->opened.Set(absl::OkStatus());
  EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded,
                            "worker alice waits for the gradient of edge 1 "
                            "from worker bob"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("took longer than " + ShownTime(timeout)));
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable z = *agent().Async<&Multiply>("carol", ctx, x, x).Await();
  EXPECT_THAT(ctx.Backward(autograd::Sum(z)), IsOk());
}

TEST_P(FaultsTest, AHandlerThatThrowsLeavesNoContextBehind) {
  Variable x = Leaf(2);
  {
    Context ctx(agent());
    EXPECT_THAT(agent().Async<&Throw>("bob", ctx, x).Await(),
                Fails(StatusCode::kInternal, "thrown"));
    EXPECT_EQ(OpenContexts(cluster_.at("bob")).size(), 1u);
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

TEST_P(FaultsTest, ANestedCallsContextEndsEverywhereWithItsRoot) {
  {
    Context ctx(agent());
    ASSERT_THAT(
        agent()
            .Async<&Travel>("bob", ctx, Variable(test::Put(Tensor::Ones({2}))),
                            Route{"carol", "bob"})
            .Await(),
        IsOk());
    for (const char* worker : {"alice", "bob", "carol"}) {
      EXPECT_EQ(OpenContexts(cluster_.at(worker)).size(), 1u) << worker;
    }
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

TEST_P(FaultsTest, TheDeathOfAnOpenerLeavesItsContextToTheRoot) {
  Promise<void> noticed;
  // Hears it after what dist::Attach set.
  cluster_.at("carol").WatchMembers([noticed](const rpc::MemberEvent& event) {
    if (event.kind == rpc::MemberEvent::Kind::kJoined) return;
    if (event.worker.name == "bob") noticed.Set(absl::OkStatus());
  });
  {
    Context ctx(agent());
    Variable x = Leaf(2);
    ASSERT_THAT(agent().Async<&Travel>("bob", ctx, x, Route{"carol"}).Await(),
                IsOk());
    cluster_.Kill("bob");
    ASSERT_THAT(noticed.future().Await(std::chrono::seconds(9)), IsOk());
    auto y = agent().Async<&Multiply>("carol", ctx, x, x).Await();
    ASSERT_THAT(y, IsOk());
    EXPECT_THAT(ctx.Backward(autograd::Sum(*y)), IsOk());
    EXPECT_EQ(First(ctx.GradientOf(x)), 4);
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

// Alice calls nobody but bob, who alone could have told carol of the end.
TEST_P(FaultsTest, WhatADeadOpenerBroughtEndsWithTheRoot) {
  {
    Context ctx(agent());
    ASSERT_THAT(
        agent().Async<&Travel>("bob", ctx, Leaf(2), Route{"carol"}).Await(),
        IsOk());
    cluster_.Kill("bob");
    EXPECT_EQ(OpenContexts(cluster_.at("carol")).size(), 1u);
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

TEST_P(FaultsTest, AHandlerMayOpenAContextOfItsOwn) {
  Variable x = Leaf(3);
  Context ctx(agent());
  auto gradient = agent().Async<&OwnStep>("bob", ctx, x).Await();
  ASSERT_THAT(gradient, IsOk());
  EXPECT_EQ(*gradient, 3);
  EXPECT_TRUE(ctx.Gradients().empty());
}

TEST_P(FaultsTest, AValueOfAnotherContextIsRefused) {
  Variable x = Leaf(2), y = Leaf(3);
  Context first(agent()), second(agent());
  // Both have an edge 1 from alice to bob and back.
  Variable old = *agent().Async<&Multiply>("bob", first, x, x).Await();
  Variable mine = *agent().Async<&Multiply>("bob", second, y, y).Await();
  EXPECT_THAT(second.Backward(autograd::Sum(old)),
              Fails(StatusCode::kInvalidArgument, first.id().ToString()));
  EXPECT_THAT(second.Backward(autograd::Sum(mine + old)),
              Fails(StatusCode::kInvalidArgument, first.id().ToString()));
  EXPECT_FALSE(second.GradientOf(y).defined());
}

TEST_P(FaultsTest, AValueThatAnEarlierContextLeftAtAWorkerIsRefused) {
  Variable x = Leaf(2), y = Leaf(3);
  RRef<Variable> kept;
  {
    Context first(agent());
    kept = agent().Remote<&Multiply>("bob", first, x, x);
    ASSERT_THAT(kept.Ready().Await(), IsOk());
  }
  Context second(agent());
  ASSERT_THAT(agent().Async<&Multiply>("bob", second, y, y).Await(), IsOk());
  Variable stale = *kept.Fetch(second).Await();
  EXPECT_EQ(First(stale.tensor()), 4);
  absl::Status status = second.Backward(autograd::Sum(stale));
  EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, "bob"));
  EXPECT_FALSE(second.GradientOf(y).defined());
}

TEST_P(FaultsTest, RootsThatCannotBeAreRefused) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
  EXPECT_THAT(ctx.Backward(y),
              Fails(StatusCode::kInvalidArgument, "root 0 has shape [2]"));
  EXPECT_THAT(ctx.Backward(Variable()),
              Fails(StatusCode::kInvalidArgument, "root 0 is undefined"));
  EXPECT_THAT(ctx.Backward(std::vector<Variable>{}, {}),
              Fails(StatusCode::kInvalidArgument, "no roots"));
  EXPECT_THAT(
      ctx.Backward({y, Variable(test::Put(Tensor::Ones({1})))},
                   {test::Put(Tensor::Ones({2})), Tensor()}),
      Fails(StatusCode::kInvalidArgument, "root 1 does not require grad"));
  EXPECT_THAT(ctx.Backward({y}, {test::Put(Tensor::Ones({3}))}),
              Fails(StatusCode::kInvalidArgument, "its gradient [3]"));
  EXPECT_THAT(ctx.Backward({y}, {test::Put(Tensor::Ones({2}))}), IsOk());
}

TEST_P(FaultsTest, ASecondBackwardWithoutARetainedGraphIsAnError) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable loss =
      autograd::Sum(*agent().Async<&Multiply>("bob", ctx, x, x).Await());
  ASSERT_THAT(ctx.Backward(loss), IsOk());
  absl::Status again = ctx.Backward(loss);
  EXPECT_FALSE(again.ok());
  EXPECT_THAT(std::string(again.message()), HasSubstr("retain_graph"));
  EXPECT_EQ(First(ctx.GradientOf(x)), 4);
}

// bob fails; carol and dave, which bob brought in, must forget the context too.
TEST(Faults, OfOneOfFourWorkersLeaveNoContextOnTheOthers) {
  testing::TrainingCluster cluster(
      4, [](rpc::Registry& registry) { AddRemoteMath(registry); });
  Variable x = Leaf(2);
  {
    Context ctx(cluster.alice());
    Variable y = *cluster.alice()
                      .Async<&Travel>("bob", ctx, x, Route{"carol", "dave"})
                      .Await();
    cluster.Kill("bob");
    EXPECT_FALSE(ctx.Backward(autograd::Sum(y)).ok());
  }
  EXPECT_TRUE(cluster.NoContextsLeft());
}

}  // namespace
}  // namespace baton::dist
