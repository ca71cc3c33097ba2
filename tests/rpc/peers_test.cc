// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peers.h"

#include <gtest/gtest.h>

#include <limits>

namespace baton::rpc::internal {
namespace {

using namespace std::chrono_literals;

TEST(SeenNumbers, EachIsNewOnceInAnyOrder) {
  SeenNumbers seen;
  for (uint64_t n : {1, 3, 2, 7, 5}) EXPECT_TRUE(seen.FirstTime(n)) << n;
  for (uint64_t n : {1, 2, 3, 5, 7, 0}) EXPECT_FALSE(seen.FirstTime(n)) << n;
  for (uint64_t n = 8; n < 200'000; n += 2) EXPECT_TRUE(seen.FirstTime(n));
  EXPECT_FALSE(seen.FirstTime(9));
}

TEST(SeenNumbers, OneThatManyOvertookIsStillNew) {
  SeenNumbers seen;
  for (uint64_t n = 4; n < 200'000; ++n) ASSERT_TRUE(seen.FirstTime(n));
  for (uint64_t n : {2, 1, 3}) EXPECT_TRUE(seen.FirstTime(n)) << n;
  for (uint64_t n : {1, 2, 3, 4, 199'999}) EXPECT_FALSE(seen.FirstTime(n)) << n;
}

TEST(SeenNumbers, AGapIsFilledFromAnySide) {
  SeenNumbers seen;
  EXPECT_TRUE(seen.FirstTime(10));
  for (uint64_t n : {5, 1, 9, 4, 6, 2, 8, 3, 7}) {
    EXPECT_TRUE(seen.FirstTime(n)) << n;
    EXPECT_FALSE(seen.FirstTime(n)) << n;
  }
  for (uint64_t n = 1; n <= 10; ++n) EXPECT_FALSE(seen.FirstTime(n)) << n;
  EXPECT_TRUE(seen.FirstTime(11));
}

TEST(SeenNumbers, ExtremeNumbersDoNoHarm) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  SeenNumbers seen;
  EXPECT_FALSE(seen.FirstTime(kMost));
  EXPECT_TRUE(seen.FirstTime(kMost - 1));
  EXPECT_FALSE(seen.FirstTime(kMost - 1));
  EXPECT_FALSE(seen.FirstTime(kMost));
  EXPECT_FALSE(seen.FirstTime(0));
  EXPECT_TRUE(seen.FirstTime(1));
}

class PeersTest : public ::testing::Test {
 protected:
  PeersTest() { peers_.Add(bob_); }
  void RemoveAndAdd(const WorkerInfo& peer) {
    EXPECT_TRUE(peers_.Remove("bob").has_value());
    peers_.Add(peer);
  }

  const WorkerInfo bob_{"bob", Rank{1}, 2, "there"};
  Peers peers_{{"alice", Rank{0}, 1, "here"}};
};

// Numbers are per pair of incarnations, and a removal makes no new one.
TEST_F(PeersTest, ARemovedIncarnationKeepsItsNumbers) {
  EXPECT_EQ(peers_.NextCall("bob"), 1u);
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  EXPECT_TRUE(peers_.FirstTime("bob", 3));
  RemoveAndAdd(bob_);
  EXPECT_EQ(peers_.NextCall("bob"), 2u);
  EXPECT_FALSE(peers_.FirstTime("bob", 1));
  EXPECT_TRUE(peers_.FirstTime("bob", 2));
  EXPECT_FALSE(peers_.FirstTime("bob", 3));
}

TEST_F(PeersTest, ARemovedIncarnationThatSpeaksKeepsItsNumbers) {
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  peers_.Remove("bob");
  EXPECT_FALSE(peers_.Observe(bob_, 0).stale);
  EXPECT_FALSE(peers_.FirstTime("bob", 1));
}

TEST_F(PeersTest, TheSuccessorOfARemovedIncarnationStartsAnew) {
  EXPECT_EQ(peers_.NextCall("bob"), 1u);
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  RemoveAndAdd(successor);
  EXPECT_EQ(peers_.NextCall("bob"), 1u);
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  EXPECT_TRUE(peers_.Observe(bob_, 0).stale);
}

TEST_F(PeersTest, WhatWaitsForARemovedWorkerIsDropped) {
  ASSERT_TRUE(peers_.Push(bob_, {ControlKind::kPing, {}, {}}, nullptr));
  const auto before = peers_.Take("bob", 1s);
  ASSERT_TRUE(before.has_value());
  RemoveAndAdd(bob_);
  EXPECT_EQ(peers_.ControlWaiting(), 0u);
  ASSERT_TRUE(peers_.Push(bob_, {ControlKind::kPing, {}, {}}, nullptr));
  const auto after = peers_.Take("bob", 1s);
  ASSERT_TRUE(after.has_value());
  EXPECT_GT(after->epoch, before->epoch);
}

}  // namespace
}  // namespace baton::rpc::internal
