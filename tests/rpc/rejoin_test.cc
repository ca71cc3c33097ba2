// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/agent.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;

// A worker gives another one up that never went: it removes it and adds it
// again. The lease is too long to help either of them.
class RejoinTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  ~RejoinTest() override {
    cluster_.ExpectIdle();
    EXPECT_TRUE(Counter::AllGone());
  }
  void RemoveAndAddBob() {
    const rpc::WorkerInfo info = bob_.self();
    alice_.RemovePeer("bob");
    alice_.AddPeer(info);
  }

  LocalCluster cluster_{
      {.fill = &FillCounter, .lease = 60s, .transports = MakerOf(GetParam())}};
  rpc::Agent& alice_ = cluster_["alice"];
  rpc::Agent& bob_ = cluster_["bob"];
};
INSTANTIATE_TEST_SUITE_P(Over, RejoinTest, kTransports, TransportName);

TEST_P(RejoinTest, CallsOfBothAreServedAgain) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(*alice_.Async<&Sum>("bob", 1, 2).Await(5s), 3);
    EXPECT_EQ(*bob_.Async<&Sum>("alice", 1, 2).Await(5s), 3);
    RemoveAndAddBob();
    EXPECT_EQ(*alice_.Async<&Sum>("bob", 1, 2).Await(5s), 3);
  }
}

TEST_P(RejoinTest, ObjectsAreMadeAndGivenBackAgain) {
  for (int round = 0; round < 3; ++round) {
    auto theirs = rpc::Create<Counter>(alice_, "bob", 1).Await(5s);
    ASSERT_THAT(theirs, IsOk());
    EXPECT_EQ(*theirs->Async<&Counter::Add>(1).Await(5s), 2);
    *theirs = {};
    cluster_.ExpectIdle();
    RemoveAndAddBob();
  }
}

TEST_P(RejoinTest, WhoWasGivenUpLosesItsHandlesAndReapsItsGrants) {
  auto at_bob = rpc::Create<Counter>(alice_, "bob", 1).Await(5s);
  auto at_alice = rpc::Create<Counter>(bob_, "alice", 1).Await(5s);
  ASSERT_THAT(at_bob, IsOk());
  ASSERT_THAT(at_alice, IsOk());
  RemoveAndAddBob();
  ASSERT_THAT(alice_.Async<&Sum>("bob", 1, 2).Await(5s), IsOk());
  EXPECT_TRUE(Counter::AllGone());
  EXPECT_THAT(at_bob->Async<&Counter::Get>().Await(5s),
              Fails(StatusCode::kUnavailable, "was removed"));
  EXPECT_THAT(at_alice->Async<&Counter::Get>().Await(5s),
              Fails(StatusCode::kUnavailable, "worker alice has given up"));
  EXPECT_THAT(rpc::Create<Counter>(bob_, "alice", 1).Await(5s), IsOk());
  cluster_.ExpectIdle();
}

}  // namespace
}  // namespace baton::testing
