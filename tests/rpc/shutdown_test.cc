// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "rpc/agent.h"
#include "tests/rpc/held_call.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;

class ShutdownTest : public ::testing::Test {
 protected:
  HeldCall held_;
  LocalCluster cluster_{{.fill = &FillHeldCall}};
  rpc::Agent& alice_ = cluster_["alice"];
  rpc::Agent& bob_ = cluster_["bob"];
};

TEST_F(ShutdownTest, AllWorkersTogetherEndClean) {
  RRef<Counter> there = *rpc::Create<Counter>(alice_, "bob", 1).Await();
  RRef<Counter> here = *rpc::Create<Counter>(bob_, "alice", 1).Await();
  cluster_.Shutdown();
  EXPECT_TRUE(Counter::AllGone());
  EXPECT_THAT(there.Async<&Counter::Get>().Await(),
              Fails(StatusCode::kFailedPrecondition, "shut down"));
}

TEST_F(ShutdownTest, EveryCallAfterItFails) {
  RRef<int> remote = alice_.Remote<&Sum>("bob", 1, 2);
  RRef<int> local = RRef<int>::Make(alice_, 1);
  ASSERT_THAT(remote.Ready().Await(), IsOk());
  ASSERT_THAT(alice_.Shutdown(), IsOk());
  EXPECT_THAT(alice_.Shutdown(), IsOk());
  EXPECT_THAT(
      alice_.Async<&Sum>("bob", 1, 2).Await(),
      Fails(StatusCode::kFailedPrecondition, "worker alice has shut down"));
  EXPECT_THAT(remote.Fetch().Await(),
              Fails(StatusCode::kFailedPrecondition, "has shut down"));
  EXPECT_FALSE(local.LocalValue().ok());
  EXPECT_FALSE(alice_.Remote<&Sum>("alice", 1, 2).Fetch().Await().ok());
  EXPECT_FALSE(bob_.Async<&Sum>("alice", 1, 2).Await().ok());
}

TEST_F(ShutdownTest, WaitsForCallsUnderWay) {
  Future<int> call = alice_.Async<&Wait>("bob");
  ASSERT_TRUE(held_.AwaitEntered());
  // The later one of two has nothing to do and returns: the other has begun.
  Gate begun;
  const auto shut_down = [&] {
    EXPECT_THAT(alice_.Shutdown(), IsOk());
    begun.Open();
  };
  std::thread one(shut_down), other(shut_down);
  EXPECT_TRUE(begun.Await());
  EXPECT_THAT(call.Await(200ms), Fails(StatusCode::kDeadlineExceeded, ""));
  held_.Answer(4);
  const auto answer = call.Await();
  EXPECT_THAT(answer, IsOk());
  EXPECT_EQ(answer.value_or(0), 4);
  one.join();
  other.join();
}

TEST_F(ShutdownTest, EndsByItsTimeoutAndSaysWhatIsLeft) {
  RRef<Counter> held = *rpc::Create<Counter>(bob_, "alice", 1).Await();
  Future<int> call = bob_.Async<&Wait>("alice");
  ASSERT_TRUE(held_.AwaitEntered());
  // What is left is so until the test ends.
  const absl::Status status = alice_.Shutdown({.timeout = 100ms});
  EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded, "Counter"));
  EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded, "held by bob"));
  EXPECT_THAT(status,
              Fails(StatusCode::kDeadlineExceeded, "Wait running for bob"));
  EXPECT_FALSE(call.Await().ok());
  held_.Answer(1);
}

TEST_F(ShutdownTest, ADeadPeerDoesNotHoldItUp) {
  RRef<Counter> theirs = *rpc::Create<Counter>(alice_, "bob", 1).Await();
  RRef<Counter> mine = *rpc::Create<Counter>(bob_, "alice", 1).Await();
  mine = {};
  cluster_.Kill("bob");
  EXPECT_THAT(alice_.Shutdown({.timeout = 30s}), IsOk());
}

// Such a call looks for the worker again, for as long as a lease.
TEST(GoneWorker, DoesNotHoldUpAShutdownByACallToIt) {
  LocalCluster cluster(
      {.fill = &FillCounter, .transports = MakerOf(TransportKind::kGrpc)});
  rpc::Agent& alice = cluster["alice"];
  ASSERT_THAT(alice.Async<&Sum>("bob", 1, 2).Await(), IsOk());
  cluster.Kill("bob");
  ASSERT_TRUE(Within(20s, [&] { return alice.workers().size() == 1; }));
  Future<int> call = alice.Async<&Sum>("bob", 1, 2);
  EXPECT_THAT(alice.Shutdown({.timeout = 30s}), IsOk());
  EXPECT_THAT(call.Await(), Fails(StatusCode::kUnavailable, "it is lost"));
}

// The lease is for workers that may come back to one that goes on. A shutdown
// that waited for it would end by its timeout, which is shorter, and not well.
class LongLease : public ::testing::Test {
 protected:
  static constexpr rpc::ShutdownOptions kPatient{.timeout = 30s};

  LocalCluster cluster_{
      {.names = {"alice", "bob", "carol"}, .fill = &FillCounter, .lease = 60s}};
};

TEST_F(LongLease, IsNotWaitedForByAWorkerThatShutsDown) {
  RRef<Counter> held =
      *rpc::Create<Counter>(cluster_["bob"], "alice", 1).Await();
  cluster_.Kill("bob");
  EXPECT_THAT(cluster_["alice"].Shutdown(kPatient), IsOk());
}

TEST_F(LongLease, EndsEarlyForAWorkerLostDuringTheShutdown) {
  RRef<Counter> held =
      *rpc::Create<Counter>(cluster_["bob"], "alice", 1).Await();
  std::thread killing([&] { cluster_.Kill("bob"); });
  EXPECT_THAT(cluster_["alice"].Shutdown(kPatient), IsOk());
  killing.join();
}

TEST_F(LongLease, OfADeadHolderDoesNotHideALiveOne) {
  RRef<Counter> dead =
      *rpc::Create<Counter>(cluster_["bob"], "alice", 1).Await();
  RRef<Counter> live =
      *rpc::Create<Counter>(cluster_["carol"], "alice", 1).Await();
  cluster_.Kill("bob");
  rpc::Agent& alice = cluster_["alice"];
  auto ending =
      std::async(std::launch::async, [&] { return alice.Shutdown(kPatient); });
  // It gives up bob, and what he held, and waits for carol.
  EXPECT_TRUE(Within(20s, [&] {
    const auto objects = alice.GetDebugInfo().objects;
    return objects.size() == 1 &&
           objects[0].holders == std::vector<std::string>{"carol"};
  })) << alice.GetDebugInfo().ToString();
  EXPECT_EQ(ending.wait_for(100ms), std::future_status::timeout);
  live = {};
  EXPECT_THAT(ending.get(), IsOk());
}

TEST_F(LongLease, LastsWhileNobodyShutsDown) {
  RRef<Counter> held =
      *rpc::Create<Counter>(cluster_["bob"], "alice", 1).Await();
  cluster_.Kill("bob");
  EXPECT_FALSE(cluster_["alice"].AwaitIdle(600ms));
  EXPECT_EQ(Counter::alive, 1);
}

TEST_F(ShutdownTest, NowFailsWhatIsUnderWay) {
  Future<int> call = alice_.Async<&Wait>("bob");
  ASSERT_TRUE(held_.AwaitEntered());
  EXPECT_THAT(alice_.Shutdown({.mode = rpc::ShutdownOptions::Mode::kNow}),
              IsOk());
  EXPECT_THAT(call.Await(),
              Fails(StatusCode::kFailedPrecondition, "has shut down"));
}

// Nothing but the shutdown can end a call whose argument never comes.
TEST_F(ShutdownTest, NoCallSlipsInWhileItEnds) {
  const Promise<int> never;
  const auto end = std::chrono::steady_clock::now() + 4s;
  for (int round = 0; round < 300 && std::chrono::steady_clock::now() < end;
       ++round) {
    LocalCluster cluster({.names = {"carol"}, .fill = &FillHeldCall});
    rpc::Agent& carol = cluster["carol"];
    carol.set_default_timeout(kNoLimit);
    std::vector<Future<int>> calls;
    Gate calling;
    std::thread caller([&] {
      do {
        calls.push_back(carol.Async<&Sum>("carol", never.future(), 1));
        calling.Open();
      } while (!calls.back().ready() && calls.size() < 20'000);
    });
    ASSERT_TRUE(calling.Await());
    EXPECT_THAT(carol.Shutdown({.mode = rpc::ShutdownOptions::Mode::kNow}),
                IsOk());
    caller.join();
    for (const Future<int>& call : calls) {
      ASSERT_THAT(call.Await(5s),
                  Fails(StatusCode::kFailedPrecondition, "has shut down"));
    }
  }
}

TEST_F(ShutdownTest, AWorkerMayStartAgainUnderItsName) {
  RRef<int> before = bob_.Remote<&Sum>("alice", 1, 2);
  ASSERT_THAT(before.Ready().Await(), IsOk());
  cluster_.Restart("alice");
  EXPECT_THAT(before.Fetch().Await(), Fails(StatusCode::kUnavailable, "alice"));
  EXPECT_EQ(*bob_.Async<&Sum>("alice", 1, 2).Await(), 3);
  EXPECT_EQ(*cluster_["alice"].Async<&Sum>("bob", 1, 2).Await(), 3);
  before = {};
  cluster_.ExpectIdle();
}

}  // namespace
}  // namespace baton::testing
