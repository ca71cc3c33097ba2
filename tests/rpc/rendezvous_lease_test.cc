// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_groups.h"
#include "tests/rpc/counter.h"
#include "tests/rpc/relay.h"
#include "tests/rpc/rendezvous_requests.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;
using baton::testing::JoinResult;
using baton::testing::Left;
using baton::testing::Renewed;
using baton::testing::TakenBack;
using ::testing::ElementsAre;

// A cluster of alice and bob, or also carol, and a clock that is turned by
// hand.
class LeaseTest : public ::testing::Test {
 protected:
  explicit LeaseTest(int world_size = 2) : world_size_(world_size) {
    Enter("alice", 1);
    Enter("bob", 2);
    if (world_size_ > 2) Enter("carol", 3);
    for (const auto& [incarnation, joined] : joined_)
      EXPECT_THAT(joined, IsOk());
    EXPECT_EQ(joined_.size(), static_cast<size_t>(world_size_));
  }
  JoinOptions Options(const std::string& name, uint64_t incarnation) const {
    return {.cluster = "test",
            .self = {name, Rank{0}, incarnation, "address"},
            .world_size = world_size_,
            .lease = 1000ms};
  }
  void Enter(const JoinOptions& options) {
    baton::testing::Enter(
        groups_, options,
        [this, of = options.self.incarnation](const JoinResult& result) {
          joined_.insert_or_assign(of, result);
        });
  }
  void Enter(const std::string& name, uint64_t incarnation) {
    Enter(Options(name, incarnation));
  }
  absl::Status TakeBack(const std::string& name, uint64_t incarnation,
                        int rank) {
    JoinOptions seat = Options(name, incarnation);
    seat.wanted_rank = rank;
    return TakenBack(groups_, seat, 0, now_);
  }
  absl::Status Renew(const std::string& name, uint64_t incarnation) {
    return Renewed(groups_, name, incarnation, 0, now_).status();
  }
  // `time` goes by in which only alice renews her lease.
  void Pass(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= kTick) {
      now_ += kTick;
      EXPECT_THAT(Renew("alice", 1), IsOk());
      groups_.Reap(now_, kTick);
    }
  }
  std::vector<std::string> Names(uint64_t incarnation) {
    std::vector<std::string> names;
    for (const wire::Worker& worker : (*joined_.at(incarnation))->members()) {
      names.push_back(absl::StrCat(worker.name(), worker.incarnation()));
    }
    return names;
  }

  static constexpr auto kTick = 100ms;
  const int world_size_;
  RendezvousGroups groups_;
  std::map<uint64_t, JoinResult> joined_;
  RendezvousGroups::Clock::time_point now_ = RendezvousGroups::Clock::now();
};

TEST_F(LeaseTest, WhoDoesNotRenewIsStruckOffAndReplacedUnderItsName) {
  Pass(500ms);
  EXPECT_THAT(Renew("bob", 2), IsOk());
  Pass(900ms);
  EXPECT_THAT(Renew("bob", 2), IsOk());
  const uint64_t before = (*Renewed(groups_, "alice", 1, 0, now_))->version();
  Pass(1200ms);
  EXPECT_THAT(Renew("bob", 2), Fails(StatusCode::kNotFound, "bob"));
  Enter("bob", 3);
  ASSERT_EQ(joined_.count(3), 1u);
  ASSERT_THAT(joined_.at(3), IsOk());
  EXPECT_THAT(Names(3), ElementsAre("alice1", "bob3"));
  const auto now = Renewed(groups_, "alice", 1, before, now_);
  ASSERT_THAT(now, IsOk());
  EXPECT_GT((*now)->version(), before);
  ASSERT_EQ((*now)->members_size(), 1);
  EXPECT_EQ((*now)->members(0).incarnation(), 3u);
  ASSERT_EQ((*now)->departed_size(), 1);
  EXPECT_EQ((*now)->departed(0).incarnation(), 2u);
  EXPECT_TRUE((*now)->departed(0).lost());
  const auto later = Renewed(groups_, "alice", 1, (*now)->version(), now_);
  ASSERT_THAT(later, IsOk());
  EXPECT_TRUE((*later)->members().empty());
}

TEST_F(LeaseTest, ASuccessorWaitsUntilItsPredecessorsLeaseIsOver) {
  Pass(500ms);
  Enter("bob", 3);
  EXPECT_EQ(joined_.count(3), 0u);
  Pass(800ms);
  ASSERT_EQ(joined_.count(3), 1u);
  EXPECT_THAT(Names(3), ElementsAre("alice1", "bob3"));
}

TEST_F(LeaseTest, ANameIsRefusedOnceItsOwnerIsHeard) {
  Enter("bob", 3);
  EXPECT_EQ(joined_.count(3), 0u);
  EXPECT_THAT(Renew("bob", 2), IsOk());
  ASSERT_EQ(joined_.count(3), 1u);
  EXPECT_THAT(joined_.at(3),
              Fails(StatusCode::kAlreadyExists, "came too late or twice"));
  EXPECT_THAT(Renew("bob", 2), IsOk());
}

TEST_F(LeaseTest, ARefusedClaimKeepsNobodyWaiting) {
  Enter("bob", 3);
  JoinOptions carol = Options("carol", 4);
  carol.world_size = kOneMore;
  Enter(carol);
  EXPECT_EQ(joined_.count(4), 0u);
  EXPECT_THAT(Renew("bob", 2), IsOk());
  Pass(kTick);
  ASSERT_EQ(joined_.count(4), 1u);
  ASSERT_THAT(joined_.at(4), IsOk());
  EXPECT_THAT(Names(4), ElementsAre("alice1", "bob2", "carol4"));
}

class LeaseOfThreeTest : public LeaseTest {
 protected:
  LeaseOfThreeTest() : LeaseTest(3) { Pass(1200ms); }
};

TEST_F(LeaseOfThreeTest, OneThatComesBackCompletesTheCluster) {
  Enter("bob", 4);
  EXPECT_EQ(joined_.count(4), 0u);
  EXPECT_THAT(TakeBack("carol", 3, 2), IsOk());
  Pass(kTick);
  ASSERT_EQ(joined_.count(4), 1u);
  ASSERT_THAT(joined_.at(4), IsOk());
  EXPECT_THAT(Names(4), ElementsAre("alice1", "bob4", "carol3"));
}

TEST_F(LeaseOfThreeTest, OnesThatComeBackLeaveNoPlaceToWhoeverWaits) {
  Enter("dave", 4);
  EXPECT_THAT(TakeBack("carol", 3, 2), IsOk());
  EXPECT_EQ(joined_.count(4), 0u);
  EXPECT_THAT(TakeBack("bob", 2, 1), IsOk());
  ASSERT_EQ(joined_.count(4), 1u);
  EXPECT_THAT(joined_.at(4), Fails(StatusCode::kAlreadyExists,
                                   "complete with 3 workers; worker dave"));
}

TEST_F(LeaseOfThreeTest, AllThatWaitedInVainHearWhoCame) {
  JoinOptions dave = Options("dave", 4);
  dave.timeout = 300ms;
  JoinOptions other = dave;
  dave.cluster = other.cluster = "other";
  other.self = Options("erin", 5).self;
  Enter(dave);
  Enter(other);
  Pass(500ms);
  for (const uint64_t incarnation : {4u, 5u}) {
    ASSERT_EQ(joined_.count(incarnation), 1u);
    EXPECT_THAT(joined_.at(incarnation),
                Fails(StatusCode::kDeadlineExceeded,
                      "2 of 3 workers came within 300 ms (dave, erin)"));
  }
}

TEST_F(LeaseTest, AnotherNameMayTakeTheFreePlaceButNoOther) {
  Enter("carol", 3);
  EXPECT_THAT(joined_.at(3),
              Fails(StatusCode::kAlreadyExists, "came too late or twice"));
  Pass(1200ms);
  Enter("carol", 4);
  ASSERT_THAT(joined_.at(4), IsOk());
  EXPECT_THAT(Names(4), ElementsAre("alice1", "carol4"));
}

TEST_F(LeaseTest, TimeInWhichTheRendezvousDidNotRunIsNobodysSilence) {
  Pass(900ms);
  now_ += 60s;
  groups_.Reap(now_, kTick);
  EXPECT_THAT(Renew("alice", 1), IsOk());
  EXPECT_THAT(Renew("bob", 2), IsOk());
  Pass(1200ms);
  EXPECT_THAT(Renew("bob", 2), Fails(StatusCode::kNotFound, "bob"));
}

TEST_F(LeaseTest, AClusterWithNobodyLeftCanMeetAnew) {
  for (int i = 0; i < 12; ++i) groups_.Reap(now_ += kTick, kTick);
  EXPECT_FALSE(Renew("alice", 1).ok());
  Enter("bob", 3);
  EXPECT_EQ(joined_.count(3), 0u);
  Enter("alice", 4);
  ASSERT_THAT(joined_.at(3), IsOk());
  EXPECT_THAT(Names(4), ElementsAre("bob3", "alice4"));
}

TEST(MemberWithoutALease, StaysUntilItLeaves) {
  RendezvousGroups groups;
  auto now = RendezvousGroups::Clock::now();
  int done = 0;
  JoinOptions alice{.cluster = "test",
                    .self = {"alice", Rank{0}, 1, "address"},
                    .world_size = 1};
  baton::testing::Enter(groups, alice,
                        [&](const JoinResult& result) { done += result.ok(); });
  for (int i = 0; i < 1000; ++i) groups.Reap(now += 100ms, 100ms);
  EXPECT_EQ(done, 1);
  EXPECT_THAT(Renewed(groups, "alice", 1, 0), IsOk());
  EXPECT_THAT(Left(groups, "alice", 1), IsOk());
}

// Over a socket: while it is kept nobody is struck off, then soon.
TEST(RendezvousLeaseTest, IsKeptUntilItIsStopped) {
  auto server = RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  const auto options = [](uint64_t incarnation) {
    return JoinOptions{.cluster = "test",
                       .self = {"alice", Rank{0}, incarnation, "address"},
                       .world_size = 1,
                       .timeout = 20s,
                       .lease = 1500ms};
  };
  const std::string address = (*server)->address();
  auto workers = Join(address, options(1));
  ASSERT_THAT(workers, IsOk());
  RendezvousLease lease(address, options(1), *workers);
  lease.Start([](const MemberEvent&) { ADD_FAILURE() << "nobody is new"; });
  EXPECT_THAT(Join(address, options(2)),
              Fails(StatusCode::kAlreadyExists, "came too late or twice"));
  lease.Stop();
  EXPECT_THAT(Join(address, options(3)), IsOk());
}

TEST(RendezvousLeaseTest, TellsOfNewcomers) {
  auto server = RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address();
  const WorkerInfo alice{"alice", Rank{0}, 1, "here"};
  const WorkerInfo bob{"bob", Rank{1}, 3, "there"};
  JoinOptions options{.cluster = "test",
                      .self = alice,
                      .wanted_rank = 0,
                      .world_size = 2,
                      .timeout = 20s,
                      .lease = 1500ms};
  // Bob's first self joins and is never heard again.
  JoinOptions lost = options;
  lost.self = {"bob", Rank{1}, 2, "there"};
  lost.wanted_rank = 1;
  std::thread losing([&] { EXPECT_THAT(Join(address, lost), IsOk()); });
  auto workers = Join(address, options);
  losing.join();
  ASSERT_THAT(workers, IsOk());
  baton::testing::Gate told;
  RendezvousLease lease(address, options, *workers);
  std::vector<MemberEvent> events;
  lease.Start([&](const MemberEvent& event) {
    events.push_back(event);
    if (event.kind == MemberEvent::Kind::kJoined) told.Open();
  });
  lost.self = bob;
  EXPECT_THAT(Join(address, lost), IsOk());
  EXPECT_TRUE(told.Await());
  lease.Stop();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, MemberEvent::Kind::kLost);
  EXPECT_EQ(events[0].worker.incarnation, 2u);
  EXPECT_EQ(events[1].worker, bob);
}

// No longer than the lease in all, but a connection that is cut off may never
// tell that it is.
TEST(RendezvousLeaseTest, OutlivesACutThatIsShorter) {
  auto server = RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  baton::testing::Relay relay((*server)->address());
  const JoinOptions options{.cluster = "test",
                            .self = {"alice", Rank{0}, 1, "here"},
                            .world_size = 1,
                            .timeout = 20s,
                            .lease = 3000ms};
  auto members = Join(relay.address(), options);
  ASSERT_THAT(members, IsOk());
  RendezvousLease lease(relay.address(), options, *members);
  lease.Start([](const MemberEvent&) { ADD_FAILURE() << "nothing is new"; });
  const auto listed = [&] {
    return ListWorkers((*server)->address(), "test", 20s).ok();
  };
  for (int i = 0; i < 3; ++i) {
    relay.Cut();
    std::this_thread::sleep_for(1500ms);
    relay.Mend();
    // By when one that had not come through would be struck off.
    const auto until = std::chrono::steady_clock::now() + 1700ms;
    while (std::chrono::steady_clock::now() < until) {
      ASSERT_TRUE(listed()) << "after cut " << i;
      std::this_thread::sleep_for(20ms);
    }
  }
  lease.Stop();
}

// Members, and not the rendezvous, know who they are.
TEST(RendezvousLeaseTest, ARendezvousThatBeginsAnewTakesItsMembersBack) {
  auto server = RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address();
  const auto options = [](const std::string& name, uint64_t incarnation) {
    return JoinOptions{.cluster = "test",
                       .self = {name, Rank{0}, incarnation, "at " + name},
                       .world_size = 2,
                       .timeout = 20s,
                       .lease = 1500ms};
  };
  std::vector<std::unique_ptr<RendezvousLease>> leases(2);
  const auto join = [&](size_t i, JoinOptions self) {
    auto members = Join(address, self);
    ASSERT_THAT(members, IsOk());
    for (const WorkerInfo& worker : members->workers) {
      if (worker.name == self.self.name) self.self = worker;
    }
    leases[i] = std::make_unique<RendezvousLease>(address, self, *members);
    leases[i]->Start([](const MemberEvent& event) {
      if (event.worker.name != "carol") ADD_FAILURE() << event.cause;
    });
  };
  std::thread bob([&] { join(1, options("bob", 2)); });
  join(0, options("alice", 1));
  bob.join();
  const auto before = ListWorkers(address, "test", 20s);
  ASSERT_THAT(before, IsOk());
  server->reset();
  server = RendezvousServer::Make(address);
  ASSERT_THAT(server, IsOk());
  // One who comes meanwhile meets them.
  JoinOptions carol = options("carol", 3);
  carol.world_size = kOneMore;
  auto members = Join(address, carol);
  ASSERT_THAT(members, IsOk());
  ASSERT_EQ(members->workers.size(), 3u);
  EXPECT_EQ(members->workers[0], (*before)[0]);
  EXPECT_EQ(members->workers[1], (*before)[1]);
  EXPECT_EQ(members->workers[2].name, "carol");
  for (auto& lease : leases) lease->Stop();
}

}  // namespace
}  // namespace baton::rpc
