// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peers.h"

#include <gtest/gtest.h>

namespace baton::rpc::internal {
namespace {

using namespace std::chrono_literals;

const absl::Status kRemoved = absl::UnavailableError("it was removed");

class PeersTest : public ::testing::Test {
 protected:
  PeersTest() { peers_.Add(bob_); }
  void RemoveAndAdd(const WorkerInfo& peer) {
    EXPECT_TRUE(peers_.Remove(bob_, kRemoved).has_value());
    peers_.Add(peer);
  }

  const WorkerInfo bob_{"bob", Rank{1}, 2, "there"};
  Peers peers_{{"alice", Rank{0}, 1, "here"}};
};

TEST_F(PeersTest, ARankIsThatOfWhomItWasGivenToLast) {
  EXPECT_EQ(peers_.Find(Rank{1})->name, "bob");
  const WorkerInfo dave{"dave", Rank{1}, 3, "elsewhere"};
  // One that says so itself does not take it from one that is there.
  peers_.Observe(dave, {});
  EXPECT_EQ(peers_.Find(Rank{1})->name, "bob");
  bool leaving = false;
  EXPECT_NE(peers_.MarkLost(bob_, &leaving), 0u);
  peers_.Add(dave);
  EXPECT_EQ(peers_.Find(Rank{1})->name, "dave");
  EXPECT_TRUE(peers_.Remove(bob_, kRemoved).has_value());
  EXPECT_EQ(peers_.Find(Rank{1})->name, "dave");
  EXPECT_TRUE(peers_.Remove(dave, kRemoved).has_value());
  EXPECT_EQ(peers_.Find(Rank{1}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(peers_.Find(Rank{7}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PeersTest, OneThatIsListedAndLostCanStillBeCalledAndComesBack) {
  bool leaving = false;
  const uint64_t loss = peers_.MarkLost(bob_, &leaving);
  ASSERT_TRUE(peers_.GiveUp(bob_, loss, kRemoved));
  EXPECT_EQ(peers_.All().size(), 1u);
  EXPECT_TRUE(peers_.Find(Rank{1}).ok());
  EXPECT_TRUE(peers_.Observe(bob_, {}).joined);
  EXPECT_EQ(peers_.All().size(), 2u);
}

TEST_F(PeersTest, OneThatHasLeftIsNotTakenForOneThatIsThere) {
  peers_.MarkLeaving(bob_);
  bool leaving = false;
  const uint64_t loss = peers_.MarkLost(bob_, &leaving);
  ASSERT_TRUE(peers_.GiveUp(bob_, loss, kRemoved));
  EXPECT_TRUE(peers_.Infos().empty());
  EXPECT_TRUE(peers_.Observe(bob_, {}).stale);
  EXPECT_TRUE(peers_.Add(bob_).stale);
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  EXPECT_TRUE(peers_.Add(successor).joined);
}

// What it has sent may be under way.
TEST_F(PeersTest, OneThatNothingWasHeardOfIsGivenUpAllTheSame) {
  EXPECT_TRUE(peers_.StrikeOff(bob_, kRemoved).has_value());
  EXPECT_TRUE(peers_.Observe(bob_, {}).joined);
  EXPECT_EQ(peers_.Epoch("bob"), 2u);
  const Peers::Observed heard = peers_.Observe(bob_, {1, 5});
  EXPECT_EQ(heard.spoken, Peers::Spoken::kEarlier);
  // Nothing is served of an earlier epoch, so the number was not seen.
  EXPECT_FALSE(heard.again);
  EXPECT_TRUE(peers_.FirstTime("bob", 5));
  // While it is up only its connection tells.
  EXPECT_FALSE(peers_.StrikeOff(bob_, kRemoved).has_value());
  EXPECT_EQ(peers_.All().size(), 2u);
}

// Numbers are per pair of incarnations, and a removal makes no new one.
TEST_F(PeersTest, ARemovedIncarnationKeepsItsNumbers) {
  EXPECT_EQ(peers_.NextCall(bob_)->number, 1u);
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  EXPECT_TRUE(peers_.FirstTime("bob", 3));
  RemoveAndAdd(bob_);
  EXPECT_EQ(peers_.NextCall(bob_)->number, 2u);
  EXPECT_FALSE(peers_.FirstTime("bob", 1));
  EXPECT_TRUE(peers_.FirstTime("bob", 2));
  EXPECT_FALSE(peers_.FirstTime("bob", 3));
}

TEST_F(PeersTest, AMessageSaysItsEpochAndItsCall) {
  const Peers::Observed first = peers_.Observe(bob_, {1, 1});
  EXPECT_EQ(first.spoken, Peers::Spoken::kNow);
  EXPECT_FALSE(first.again);
  EXPECT_TRUE(peers_.Observe(bob_, {1, 1}).again);
  const Peers::Observed later = peers_.Observe(bob_, {4, 2});
  EXPECT_EQ(later.spoken, Peers::Spoken::kLater);
  EXPECT_FALSE(later.again);
  EXPECT_EQ(peers_.Epoch("bob"), 4u);
  EXPECT_EQ(peers_.Observe(bob_, {.epoch = 3}).spoken, Peers::Spoken::kEarlier);
}

TEST_F(PeersTest, AnEpochEndsForTheIncarnationThatIsRemoved) {
  const uint64_t epoch = peers_.Epoch("bob");
  EXPECT_EQ(peers_.NextCall(bob_, epoch)->epoch, epoch);
  EXPECT_TRUE(peers_.Remove(bob_, kRemoved).has_value());
  EXPECT_FALSE(peers_.NextCall(bob_).has_value());
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  peers_.Add(successor);
  EXPECT_TRUE(peers_.NextCall(successor, epoch).has_value());
  EXPECT_FALSE(peers_.NextCall(bob_).has_value());
}

TEST_F(PeersTest, ACallBelongsToTheEpochInWhichItBegan) {
  const uint64_t epoch = peers_.Epoch("bob");
  bool leaving = false;
  const uint64_t loss = peers_.MarkLost(bob_, &leaving);
  EXPECT_TRUE(peers_.GiveUp(bob_, loss, kRemoved));
  EXPECT_FALSE(peers_.NextCall(bob_, epoch).has_value());
  EXPECT_GT(peers_.NextCall(bob_)->epoch, epoch);
}

TEST_F(PeersTest, ARemovedIncarnationThatSpeaksKeepsItsNumbers) {
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  peers_.Remove(bob_, kRemoved);
  EXPECT_FALSE(peers_.Observe(bob_, {}).stale);
  EXPECT_FALSE(peers_.FirstTime("bob", 1));
}

TEST_F(PeersTest, TheSuccessorOfARemovedIncarnationStartsAnew) {
  EXPECT_EQ(peers_.NextCall(bob_)->number, 1u);
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  RemoveAndAdd(successor);
  EXPECT_FALSE(peers_.NextCall(bob_).has_value());
  EXPECT_EQ(peers_.NextCall(successor)->number, 1u);
  EXPECT_TRUE(peers_.FirstTime("bob", 1));
  EXPECT_TRUE(peers_.Observe(bob_, {}).stale);
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
