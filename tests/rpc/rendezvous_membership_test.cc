// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Who may come once some of a cluster have left it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_groups.h"
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
using ::testing::SizeIs;

JoinOptions Worker(const std::string& name, uint64_t incarnation,
                   int world_size, int rank) {
  return {.cluster = "test",
          .self = {name, Rank{0}, incarnation, "address"},
          .wanted_rank = rank,
          .world_size = world_size};
}

// A daemon and a trainer that have met, and a clock that is turned by hand.
class MembershipTest : public ::testing::Test {
 protected:
  explicit MembershipTest(int max_members = 0) : groups_(max_members) {
    Enter("daemon", 1);
    Enter("trainer", 2);
    EXPECT_TRUE(joined_.at(1).ok() && joined_.at(2).ok());
  }
  ~MembershipTest() override { groups_.Close(); }

  void Enter(const std::string& name, uint64_t incarnation, int world_size = 2,
             int rank = -1) {
    baton::testing::Enter(groups_, Worker(name, incarnation, world_size, rank),
                          [this, incarnation](const JoinResult& result) {
                            joined_.insert_or_assign(incarnation, result);
                          });
  }
  void Leave(const std::string& name, uint64_t incarnation) {
    EXPECT_THAT(Left(groups_, name, incarnation, now_), IsOk());
  }
  void Pass(std::chrono::milliseconds time) {
    now_ += time;
    groups_.Reap(now_, time);
  }
  bool Answered(uint64_t incarnation) { return joined_.contains(incarnation); }
  std::vector<std::string> Names(uint64_t incarnation) {
    std::vector<std::string> names;
    for (const wire::Worker& worker : (*joined_.at(incarnation))->members()) {
      names.push_back(absl::StrCat(worker.rank(), " ", worker.name(),
                                   worker.incarnation()));
    }
    return names;
  }

  static constexpr auto kSettling = RendezvousGroup::kSettling;
  RendezvousGroups groups_;
  std::map<uint64_t, JoinResult> joined_;
  RendezvousGroups::Clock::time_point now_ = RendezvousGroups::Clock::now();
};

TEST_F(MembershipTest, ADaemonThatStaysServesTheNextTrainer) {
  for (uint64_t trainer = 2; trainer < 5; ++trainer) {
    Leave("trainer", trainer);
    Pass(kSettling);
    Enter("trainer", trainer + 1);
    ASSERT_TRUE(Answered(trainer + 1));
    ASSERT_THAT(joined_.at(trainer + 1), IsOk());
    EXPECT_THAT(
        Names(trainer + 1),
        ElementsAre("0 daemon1", absl::StrCat("1 trainer", trainer + 1)));
  }
}

TEST_F(MembershipTest, TheDaemonHearsOfTheNextTrainer) {
  const uint64_t before = (*Renewed(groups_, "daemon", 1, 0))->version();
  Leave("trainer", 2);
  Enter("other", 3);
  Pass(kSettling);
  const auto now = Renewed(groups_, "daemon", 1, before, now_);
  ASSERT_THAT(now, IsOk());
  EXPECT_GT((*now)->version(), before);
  EXPECT_FALSE((*now)->whole());
  ASSERT_THAT((*now)->members(), SizeIs(1));
  EXPECT_EQ((*now)->members(0).name(), "other");
  EXPECT_EQ((*now)->members(0).rank(), 1);
  ASSERT_THAT((*now)->departed(), SizeIs(1));
  EXPECT_EQ((*now)->departed(0).incarnation(), 2u);
  EXPECT_FALSE((*now)->departed(0).lost());
}

TEST_F(MembershipTest, WhoComesWhileAllLeaveMeetsNoneOfThem) {
  Leave("trainer", 2);
  Enter("trainer", 3);
  Pass(kSettling - 1ms);
  EXPECT_FALSE(Answered(3));
  Leave("daemon", 1);
  EXPECT_FALSE(Answered(3));
  Enter("daemon", 4);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(Names(3), ElementsAre("0 trainer3", "1 daemon4"));
}

TEST_F(MembershipTest, TheNextRunMayHaveAnotherSize) {
  Leave("trainer", 2);
  Enter("trainer", 3, 1);
  EXPECT_FALSE(Answered(3));
  Leave("daemon", 1);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(Names(3), ElementsAre("0 trainer3"));
}

TEST_F(MembershipTest, ButNotBesideThoseWhoStay) {
  Leave("trainer", 2);
  Enter("trainer", 3, 3);
  Pass(kSettling);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(joined_.at(3), Fails(StatusCode::kInvalidArgument,
                                   "a cluster of 3 workers, but it has 2"));
}

TEST_F(MembershipTest, OfTwoWhoWaitForOnePlaceTheFirstGetsIt) {
  Leave("trainer", 2);
  Enter("first", 3);
  Enter("second", 4);
  Pass(kSettling);
  ASSERT_TRUE(Answered(3) && Answered(4));
  EXPECT_THAT(Names(3), ElementsAre("0 daemon1", "1 first3"));
  EXPECT_THAT(joined_.at(4), Fails(StatusCode::kAlreadyExists, "too late"));
}

// Both of them are told, and a third one of their time; who comes once that is
// over is a worker that was started again.
TEST_F(MembershipTest, ANameThatTwoCameWithCanBeUsedAgain) {
  groups_.StrikeOff("trainer", "was killed");
  groups_.StrikeOff("daemon", "was killed");
  Enter("daemon", 3, 3);
  for (uint64_t of_one_name : {4, 5, 6}) Enter("trainer", of_one_name, 3);
  for (uint64_t of_one_name : {4, 5, 6}) {
    ASSERT_TRUE(Answered(of_one_name));
    EXPECT_THAT(joined_.at(of_one_name),
                Fails(StatusCode::kAlreadyExists, "two workers"));
  }
  EXPECT_FALSE(Answered(3));
  Pass(kSettling + 100ms);
  Enter("trainer", 7, 3);
  Enter("third", 8, 3);
  ASSERT_TRUE(Answered(7));
  EXPECT_THAT(Names(7), ElementsAre("0 daemon3", "1 trainer7", "2 third8"));
}

TEST_F(MembershipTest, ARendezvousThatClosesStrikesNobodyOff) {
  groups_.Close();
  EXPECT_THAT(Renewed(groups_, "daemon", 1, 0, now_),
              Fails(StatusCode::kUnavailable, "closed"));
}

TEST_F(MembershipTest, OneMoreJoinsAClusterThatIsComplete) {
  const uint64_t before = (*Renewed(groups_, "daemon", 1, 0))->version();
  Enter("third", 3, kOneMore);
  Enter("fourth", 4, kOneMore);
  ASSERT_TRUE(Answered(3) && Answered(4));
  EXPECT_THAT(Names(4),
              ElementsAre("0 daemon1", "1 trainer2", "2 third3", "3 fourth4"));
  EXPECT_THAT((*Renewed(groups_, "daemon", 1, before, now_))->members(),
              SizeIs(2));
  Enter("third", 5, kOneMore);
  EXPECT_THAT(joined_.at(5), Fails(StatusCode::kAlreadyExists, "too late"));
}

TEST_F(MembershipTest, OneMoreTakesNobodysPlace) {
  Leave("trainer", 2);
  Pass(kSettling);
  Enter("third", 3, kOneMore);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(Names(3), ElementsAre("0 daemon1", "2 third3"));
  Enter("trainer", 4);
  ASSERT_TRUE(Answered(4));
  EXPECT_THAT(Names(4), ElementsAre("0 daemon1", "1 trainer4", "2 third3"));
  Leave("third", 3);
  Pass(kSettling);
  Enter("fourth", 5, kOneMore);
  ASSERT_TRUE(Answered(5));
  EXPECT_THAT(Names(5), ElementsAre("0 daemon1", "1 trainer4", "2 fourth5"));
}

TEST_F(MembershipTest, OneMoreDoesNotWaitForSuccessors) {
  Enter("other", 3, 4);
  EXPECT_THAT(joined_.at(3), Fails(StatusCode::kAlreadyExists, "--extra"));
  Leave("trainer", 2);
  Leave("daemon", 1);
  Enter("daemon", 4);
  Enter("third", 5, kOneMore);
  EXPECT_FALSE(Answered(4) || Answered(5)) << "the cluster has not met";
  Enter("trainer", 6);
  ASSERT_TRUE(Answered(4) && Answered(5));
  EXPECT_THAT(Names(5), ElementsAre("0 daemon4", "1 trainer6", "2 third5"));
}

TEST_F(MembershipTest, OneMoreIsToldWhyItWaited) {
  Leave("trainer", 2);
  Leave("daemon", 1);
  Enter("third", 3, kOneMore);
  Pass(JoinOptions().timeout + 1s);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(joined_.at(3),
              Fails(StatusCode::kDeadlineExceeded, "has not met"));
  Enter("third", 4, kOneMore, 1);
  EXPECT_THAT(joined_.at(4), Fails(StatusCode::kInvalidArgument, "its rank"));
}

TEST_F(MembershipTest, ARankThatIsTakenIsNotGivenTwice) {
  Leave("trainer", 2);
  Enter("trainer", 3, 2, 0);
  Pass(kSettling);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(joined_.at(3),
              Fails(StatusCode::kAlreadyExists, "rank 0 is worker daemon"));
}

// A rendezvous that admits three workers of a cluster.
class FullClusterTest : public MembershipTest {
 protected:
  FullClusterTest() : MembershipTest(3) {}
  void EnterOneMore(const std::string& name, uint64_t incarnation) {
    Enter(name, incarnation, kOneMore);
  }
};

TEST_F(FullClusterTest, RefusesOneMoreUntilAMemberHasGone) {
  EnterOneMore("extra", 3);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(joined_.at(3), IsOk());
  EnterOneMore("other", 4);
  ASSERT_TRUE(Answered(4));
  EXPECT_THAT(joined_.at(4),
              Fails(StatusCode::kResourceExhausted,
                    "cluster test has 3 members, trainers counted, as many as "
                    "its rendezvous admits (baton-run --max_workers, "
                    "baton-rendezvous --max_members); worker other may join"));
  Leave("extra", 3);
  EnterOneMore("other", 5);
  Pass(kSettling);
  ASSERT_TRUE(Answered(5));
  EXPECT_THAT(Names(5), ElementsAre("0 daemon1", "1 trainer2", "2 other5"));
}

TEST_F(FullClusterTest, TakesOneThatWasStartedAgainUnderItsName) {
  EnterOneMore("extra", 3);
  groups_.StrikeOff("extra", "was killed");
  EnterOneMore("extra", 4);
  ASSERT_TRUE(Answered(4));
  EXPECT_THAT(Names(4), ElementsAre("0 daemon1", "1 trainer2", "2 extra4"));
}

TEST_F(FullClusterTest, TakesThoseItWaitsForBeforeOthers) {
  groups_.StrikeOff("trainer", "was killed");
  groups_.StrikeOff("daemon", "was killed");
  EnterOneMore("extra", 3);
  EnterOneMore("other", 4);
  Enter("daemon", 5);
  EXPECT_FALSE(Answered(3) || Answered(4) || Answered(5));
  Enter("trainer", 6);
  ASSERT_TRUE(Answered(3) && Answered(4) && Answered(6));
  EXPECT_THAT(Names(6), ElementsAre("0 daemon5", "1 trainer6", "2 extra3"));
  EXPECT_THAT(joined_.at(4), Fails(StatusCode::kResourceExhausted, "other"));
}

TEST_F(FullClusterTest, GivesThePlaceOfALostMemberToWhoComesFirst) {
  EnterOneMore("extra", 3);
  groups_.StrikeOff("daemon", "was killed");
  EnterOneMore("other", 4);
  ASSERT_TRUE(Answered(4));
  EXPECT_THAT(joined_.at(4), IsOk());
  Enter("daemon", 5);
  ASSERT_TRUE(Answered(5));
  EXPECT_THAT(joined_.at(5), Fails(StatusCode::kResourceExhausted, "daemon"));
  // The one that was struck off is alive after all.
  JoinOptions seat = Worker("daemon", 1, 2, 0);
  EXPECT_THAT(TakenBack(groups_, seat, 0, now_),
              Fails(StatusCode::kNotFound, "is another one's by now"));
}

TEST_F(FullClusterTest, RefusesAClusterThatCannotMeet) {
  groups_.StrikeOff("trainer", "was killed");
  groups_.StrikeOff("daemon", "was killed");
  Enter("daemon", 3, 4);
  ASSERT_TRUE(Answered(3));
  EXPECT_THAT(joined_.at(3), Fails(StatusCode::kResourceExhausted,
                                   "a cluster of 4 workers, but"));
}

}  // namespace
}  // namespace baton::rpc
