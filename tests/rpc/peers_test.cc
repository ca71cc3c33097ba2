// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace baton::rpc::internal {
namespace {

using namespace std::chrono_literals;

const absl::Status kRemoved = absl::UnavailableError("it was removed");

class PeersTest : public ::testing::Test {
 protected:
  PeersTest() { peers_.Add(bob_); }
  PeerPtr RemoveAndAdd(const WorkerInfo& peer) {
    EXPECT_TRUE(peers_.Remove(bob_, kRemoved).has_value());
    return peers_.Add(peer).peer;
  }
  // The incarnation that is there now.
  PeerPtr Bob() const { return peers_.Current({.name = "bob", .address = {}}); }
  static void Count(Peers& peers, const Peer& peer, const std::string& name,
                    MethodKey method = {1, 2}) {
    peers.Count(peer, {.method = method, .method_name = name, .micros = 7});
  }
  std::string NameAt(Rank rank) const {
    return peers_.InfoOf(**peers_.Find(rank)).name;
  }

  const WorkerInfo bob_{"bob", Rank{1}, 2, "there"};
  Peers peers_{{"alice", Rank{0}, 1, "here"}};
};

TEST_F(PeersTest, ARankIsThatOfWhomItWasGivenToLast) {
  EXPECT_EQ(NameAt(Rank{1}), "bob");
  const WorkerInfo dave{"dave", Rank{1}, 3, "elsewhere"};
  // One that says so itself does not take it from one that is there.
  peers_.Observe(dave, {});
  EXPECT_EQ(NameAt(Rank{1}), "bob");
  EXPECT_NE(peers_.MarkLost(bob_).number, 0u);
  peers_.Add(dave);
  EXPECT_EQ(NameAt(Rank{1}), "dave");
  EXPECT_TRUE(peers_.Remove(bob_, kRemoved).has_value());
  EXPECT_EQ(NameAt(Rank{1}), "dave");
  EXPECT_TRUE(peers_.Remove(dave, kRemoved).has_value());
  EXPECT_EQ(peers_.Find(Rank{1}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(peers_.Find(Rank{7}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PeersTest, OneThatIsListedAndLostCanStillBeCalledAndComesBack) {
  const Peers::Loss loss = peers_.MarkLost(bob_);
  ASSERT_TRUE(peers_.GiveUp(loss, kRemoved));
  EXPECT_EQ(peers_.All().size(), 1u);
  EXPECT_TRUE(peers_.Find(Rank{1}).ok());
  EXPECT_TRUE(peers_.Observe(bob_, {}).joined);
  EXPECT_EQ(peers_.All().size(), 2u);
}

TEST_F(PeersTest, OneThatHasLeftIsNotTakenForOneThatIsThere) {
  peers_.MarkLeaving(*Bob());
  const Peers::Loss loss = peers_.MarkLost(bob_);
  ASSERT_TRUE(peers_.GiveUp(loss, kRemoved));
  EXPECT_TRUE(peers_.Infos().empty());
  EXPECT_TRUE(peers_.Observe(bob_, {}).stale());
  EXPECT_TRUE(peers_.Add(bob_).stale());
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  EXPECT_TRUE(peers_.Add(successor).joined);
}

// What it has sent may be under way.
TEST_F(PeersTest, OneThatNothingWasHeardOfIsGivenUpAllTheSame) {
  EXPECT_TRUE(peers_.StrikeOff(bob_, kRemoved).has_value());
  EXPECT_TRUE(peers_.Observe(bob_, {}).joined);
  EXPECT_EQ(peers_.Epoch(*Bob()), 2u);
  const Peers::Observed heard = peers_.Observe(bob_, {1, 5});
  EXPECT_EQ(heard.spoken, Peers::Spoken::kEarlier);
  // Nothing is served of an earlier epoch, so the number was not seen.
  EXPECT_FALSE(heard.again);
  EXPECT_TRUE(peers_.FirstTime(*Bob(), 5));
  // While it is up only its connection tells.
  EXPECT_FALSE(peers_.StrikeOff(bob_, kRemoved).has_value());
  EXPECT_EQ(peers_.All().size(), 2u);
}

// Numbers are per pair of incarnations, and a removal makes no new one.
TEST_F(PeersTest, ARemovedIncarnationKeepsItsNumbers) {
  EXPECT_EQ(peers_.NextCall(*Bob())->number, 1u);
  EXPECT_TRUE(peers_.FirstTime(*Bob(), 1));
  EXPECT_TRUE(peers_.FirstTime(*Bob(), 3));
  RemoveAndAdd(bob_);
  EXPECT_EQ(peers_.NextCall(*Bob())->number, 2u);
  EXPECT_FALSE(peers_.FirstTime(*Bob(), 1));
  EXPECT_TRUE(peers_.FirstTime(*Bob(), 2));
  EXPECT_FALSE(peers_.FirstTime(*Bob(), 3));
}

TEST_F(PeersTest, AMessageSaysItsEpochAndItsCall) {
  const Peers::Observed first = peers_.Observe(bob_, {1, 1});
  EXPECT_EQ(first.spoken, Peers::Spoken::kNow);
  EXPECT_FALSE(first.again);
  EXPECT_TRUE(peers_.Observe(bob_, {1, 1}).again);
  const Peers::Observed later = peers_.Observe(bob_, {4, 2});
  EXPECT_EQ(later.spoken, Peers::Spoken::kLater);
  EXPECT_FALSE(later.again);
  EXPECT_EQ(peers_.Epoch(*Bob()), 4u);
  EXPECT_EQ(peers_.Observe(bob_, {.epoch = 3}).spoken, Peers::Spoken::kEarlier);
}

TEST_F(PeersTest, AnEpochEndsForTheIncarnationThatIsRemoved) {
  const uint64_t epoch = peers_.Epoch(*Bob());
  const PeerPtr first = Bob();
  EXPECT_EQ(peers_.NextCall(*first, epoch)->epoch, epoch);
  EXPECT_TRUE(peers_.Remove(bob_, kRemoved).has_value());
  EXPECT_FALSE(peers_.NextCall(*first).has_value());
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  const PeerPtr second = peers_.Add(successor).peer;
  EXPECT_TRUE(peers_.NextCall(*second, epoch).has_value());
  EXPECT_FALSE(peers_.NextCall(*first).has_value());
}

TEST_F(PeersTest, ACallBelongsToTheEpochInWhichItBegan) {
  const uint64_t epoch = peers_.Epoch(*Bob());
  const Peers::Loss loss = peers_.MarkLost(bob_);
  EXPECT_TRUE(peers_.GiveUp(loss, kRemoved));
  EXPECT_FALSE(peers_.NextCall(*Bob(), epoch).has_value());
  EXPECT_GT(peers_.NextCall(*Bob())->epoch, epoch);
}

TEST_F(PeersTest, ARemovedIncarnationThatSpeaksKeepsItsNumbers) {
  EXPECT_TRUE(peers_.FirstTime(*Bob(), 1));
  peers_.Remove(bob_, kRemoved);
  EXPECT_FALSE(peers_.Observe(bob_, {}).stale());
  EXPECT_FALSE(peers_.FirstTime(*Bob(), 1));
}

TEST_F(PeersTest, TheSuccessorOfARemovedIncarnationStartsAnew) {
  const PeerPtr first = Bob();
  EXPECT_EQ(peers_.NextCall(*first)->number, 1u);
  EXPECT_TRUE(peers_.FirstTime(*first, 1));
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  const PeerPtr second = RemoveAndAdd(successor);
  EXPECT_FALSE(peers_.NextCall(*first).has_value());
  EXPECT_EQ(peers_.NextCall(*second)->number, 1u);
  EXPECT_TRUE(peers_.FirstTime(*Bob(), 1));
  EXPECT_TRUE(peers_.Observe(bob_, {}).stale());
}

TEST_F(PeersTest, WhatWaitsForARemovedWorkerIsDropped) {
  ASSERT_TRUE(peers_.Push(*Bob(), {ControlKind::kPing, {}, {}}, nullptr));
  const auto before = peers_.Take(*Bob(), 1s);
  ASSERT_TRUE(before.has_value());
  RemoveAndAdd(bob_);
  EXPECT_EQ(peers_.ControlWaiting(), 0u);
  ASSERT_TRUE(peers_.Push(*Bob(), {ControlKind::kPing, {}, {}}, nullptr));
  const auto after = peers_.Take(*Bob(), 1s);
  ASSERT_TRUE(after.has_value());
  EXPECT_GT(after->epoch, before->epoch);
}

// Whoever still has the pointer of an earlier incarnation says nothing to the
// next one.
TEST_F(PeersTest, AReplacedIncarnationStaysApartFromItsSuccessor) {
  const PeerPtr first = Bob();
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  const Peers::Observed heard = peers_.Observe(successor, {});
  EXPECT_EQ(heard.replaced, first);
  EXPECT_NE(heard.peer, first);
  EXPECT_EQ(Bob(), heard.peer);
  EXPECT_TRUE(peers_.IsRemoved(*first));
  EXPECT_FALSE(peers_.Push(*first, {ControlKind::kAdd, {}, {}}, nullptr));
  EXPECT_FALSE(peers_.Take(*first, 0s).has_value());
  EXPECT_TRUE(peers_.Receive(*first, {.epoch = 1, .first = 1, .items = {{}}})
                  .items.empty());
  EXPECT_EQ(peers_.Receive(*heard.peer, {.epoch = 1, .first = 1, .items = {{}}})
                .items.size(),
            1u);
  EXPECT_EQ(peers_.Epoch(*first), 0u);
  EXPECT_EQ(peers_.MarkLost(bob_).peer, nullptr);
}

TEST_F(PeersTest, AWorkerMayCallItself) {
  const PeerPtr self = *peers_.Find("alice");
  EXPECT_EQ(*peers_.Find(Rank{0}), self);
  EXPECT_EQ(peers_.NextCall(*self)->number, 1u);
  EXPECT_EQ(peers_.NextCall(*self)->number, 2u);
}

// All incarnations share what may wait, and their statistics.
TEST_F(PeersTest, AnAccountIsThatOfAllIncarnations) {
  Peers peers({"alice", Rank{0}, 1, "here"}, {.calls = 1});
  const PeerPtr first = peers.Add(bob_).peer;
  const auto ticket = first->account->TakeCall(1);
  ASSERT_TRUE(ticket.ok());
  Count(peers, *first, "Twice");
  WorkerInfo successor = bob_;
  successor.incarnation = 3;
  const PeerPtr second = peers.Add(successor).peer;
  EXPECT_EQ(second->account->TakeCall(1).status().code(),
            absl::StatusCode::kResourceExhausted);
  Count(peers, *second, "Twice");
  Count(peers, *first, "Twice");
  const auto methods = peers.Methods();
  ASSERT_EQ(methods.size(), 1u);
  EXPECT_EQ(methods[0].peer, "bob");
  EXPECT_EQ(methods[0].method, "Twice");
  EXPECT_EQ(methods[0].calls, 3u);
}

TEST_F(PeersTest, CallsWithRemovedWorkersCountForOthers) {
  const PeerPtr bob = Bob();
  Count(peers_, *bob, "Twice");
  RemoveAndAdd(bob_);  // the same incarnation, which counts anew
  Count(peers_, *bob, "Twice");
  EXPECT_EQ(peers_.Methods().size(), 2u);
  peers_.Remove(bob_, kRemoved);
  Count(peers_, *bob, "Twice");  // one that ended late
  const auto methods = peers_.Methods();
  ASSERT_EQ(methods.size(), 1u);
  EXPECT_EQ(methods[0].peer, "others");
  EXPECT_EQ(methods[0].method, "Twice");
  EXPECT_EQ(methods[0].calls, 3u);
  EXPECT_EQ(methods[0].total_us, 3 * 7u);
  EXPECT_EQ(std::accumulate(methods[0].latency.begin(),
                            methods[0].latency.end(), uint64_t{0}),
            3u);
}

TEST_F(PeersTest, MethodsBeyondSomeThousandsShareOneEntry) {
  constexpr uint32_t kMost = 4096, kMore = 10;
  for (uint32_t i = 0; i < kMost + kMore; ++i)
    Count(peers_, *Bob(), "Method", {1, i});
  const auto methods = peers_.Methods();
  ASSERT_EQ(methods.size(), kMost + 1);
  const auto others = std::find_if(
      methods.begin(), methods.end(),
      [](const MethodStats& stats) { return stats.peer == "others"; });
  ASSERT_NE(others, methods.end());
  EXPECT_EQ(others->method, "others");
  EXPECT_EQ(others->calls, kMore);
}

}  // namespace
}  // namespace baton::rpc::internal
