// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What members are told of who comes and goes, and when.

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
using baton::testing::Listed;
using baton::testing::Renew;
using baton::testing::Renewal;
using baton::testing::Renewed;
using baton::testing::TakenBack;
using baton::testing::ToWire;
using baton::testing::Workers;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Change = MembershipLog::Change;

WorkerInfo NamedMember(const std::string& name, uint64_t incarnation,
                       int rank = 0) {
  return {name, Rank{rank}, incarnation, "127.0.0.1:1"};
}

TEST(MembershipLogTest, TellsWhatBecameOfEachLast) {
  MembershipLog log;
  log.Add(10, Change::kJoined, ToWire(NamedMember("alice", 1)), 100);
  log.Add(11, Change::kJoined, ToWire(NamedMember("bob", 2)), 100);
  log.Add(12, Change::kLost, ToWire(NamedMember("bob", 2)), 100);
  log.Add(13, Change::kJoined, ToWire(NamedMember("bob", 3)), 100);
  log.Add(14, Change::kLeft, ToWire(NamedMember("alice", 1)), 100);
  const auto since = log.Since(11);
  ASSERT_TRUE(since.has_value());
  EXPECT_EQ(since->version(), 14u);
  EXPECT_THAT(Workers(since->members()), ElementsAre(NamedMember("bob", 3)));
  ASSERT_THAT(since->departed(), SizeIs(2));
  EXPECT_EQ(since->departed(0).incarnation(), 2u);
  EXPECT_TRUE(since->departed(0).lost());
  EXPECT_FALSE(since->departed(1).lost());
  EXPECT_THAT(log.Since(14)->members(), IsEmpty());
  EXPECT_THAT(log.Since(14)->departed(), IsEmpty());
}

TEST(MembershipLogTest, KnowsNothingOfOldOrUnknownVersions) {
  MembershipLog log;
  EXPECT_FALSE(log.Since(0).has_value());
  for (uint64_t i = 10; i < 20; ++i) {
    log.Add(i, Change::kJoined, ToWire(NamedMember("alice", i)), 4);
  }
  EXPECT_FALSE(log.Since(14).has_value());
  EXPECT_THAT(log.Since(15)->members(), SizeIs(4));
  EXPECT_FALSE(log.Since(20).has_value());
}

// Groups whose members renew and listen, by a clock that is turned by hand.
class ChangesTest : public ::testing::Test {
 protected:
  ~ChangesTest() override { groups_.Close(); }

  static JoinOptions Options(const std::string& name, uint64_t incarnation,
                             int world_size) {
    return {.cluster = "test",
            .self = NamedMember(name, incarnation),
            .world_size = world_size,
            .lease = 1000ms};
  }
  void Enter(const JoinOptions& options) {
    baton::testing::Enter(groups_, options,
                          [this, incarnation = options.self.incarnation](
                              const JoinResult& result) {
                            joined_.insert_or_assign(incarnation, result);
                          });
  }
  void Meet(int size) {
    for (int i = 0; i < size; ++i) {
      Enter(Options(absl::StrCat("w", i), static_cast<uint64_t>(i + 1), size));
    }
    ASSERT_TRUE(joined_.at(1).ok());
  }
  uint64_t VersionOf(uint64_t incarnation) {
    return (*joined_.at(incarnation))->version();
  }
  void Listen(const std::string& name, uint64_t incarnation, uint64_t known) {
    heard_.erase(incarnation);
    end_listen_ = Renew(
        groups_, name, incarnation, known, 400ms,
        [this, incarnation](const Renewal& change) {
          heard_.insert_or_assign(incarnation, change);
        },
        now_);
  }
  void Pass(std::chrono::milliseconds time) {
    now_ += time;
    groups_.Reap(now_, time);
  }

  RendezvousGroups groups_;
  std::map<uint64_t, JoinResult> joined_;
  std::map<uint64_t, Renewal> heard_;
  RendezvousGroups::Cancel end_listen_;  // of the last one
  RendezvousGroups::Clock::time_point now_ = RendezvousGroups::Clock::now();
};

// Of 1,000 members each is told of one newcomer, and of nobody else.
TEST_F(ChangesTest, AJoinCostsEachMemberTheNewcomerAlone) {
  constexpr int kMembers = 1000;
  Meet(kMembers);
  const uint64_t met = VersionOf(1);
  Enter(Options("extra", 5000, kOneMore));
  ASSERT_THAT(joined_.at(5000), IsOk());
  EXPECT_THAT((*joined_.at(5000))->members(), SizeIs(kMembers + 1));
  size_t bytes = 0;
  for (int i = 0; i < kMembers; ++i) {
    const auto change = Renewed(groups_, absl::StrCat("w", i),
                                static_cast<uint64_t>(i + 1), met, now_);
    ASSERT_THAT(change, IsOk());
    EXPECT_FALSE((*change)->whole());
    EXPECT_THAT((*change)->members(), SizeIs(1));
    bytes += (*change)->ByteSizeLong();
  }
  EXPECT_LT(bytes, kMembers * 100u);
}

TEST_F(ChangesTest, AMemberHearsOfAChangeAtOnce) {
  Meet(2);
  const uint64_t met = VersionOf(1);
  Listen("w0", 1, met);
  EXPECT_FALSE(heard_.contains(1));
  EXPECT_THAT(Left(groups_, "w1", 2, now_), IsOk());
  ASSERT_TRUE(heard_.contains(1));
  ASSERT_THAT(heard_.at(1), IsOk());
  EXPECT_THAT((*heard_.at(1))->departed(), SizeIs(1));
  Pass(RendezvousGroup::kSettling);
  Listen("w0", 1, (*heard_.at(1))->version());
  EXPECT_FALSE(heard_.contains(1));
  Enter(Options("other", 3, 2));
  ASSERT_TRUE(heard_.contains(1));
  EXPECT_THAT((*heard_.at(1))->members(), SizeIs(1));
}

TEST_F(ChangesTest, WhoListensInVainIsAnsweredInTime) {
  Meet(1);
  Listen("w0", 1, VersionOf(1));
  Pass(300ms);
  EXPECT_FALSE(heard_.contains(1));
  Pass(200ms);
  ASSERT_TRUE(heard_.contains(1));
  EXPECT_EQ((*heard_.at(1))->version(), VersionOf(1));
  Listen("w0", 1, VersionOf(1));
  end_listen_();
  EXPECT_TRUE(heard_.contains(1));
}

TEST_F(ChangesTest, OneThatIsStruckOffWhileItListensIsTold) {
  Meet(1);
  Listen("w0", 1, VersionOf(1));
  heard_.clear();
  groups_.Reap(now_ += 1ms, 1ms);
  for (int i = 0; i < 12; ++i) Pass(100ms);
  EXPECT_THAT(heard_.at(1), IsOk());
  Listen("w0", 1, VersionOf(1));
  EXPECT_THAT(heard_.at(1), Fails(StatusCode::kNotFound, "w0"));
}

TEST_F(ChangesTest, ANewcomerIsLetInWhenThoseThatListenKnowOfIt) {
  Meet(2);
  const uint64_t met = VersionOf(1);
  Listen("w0", 1, met);
  Listen("w1", 2, met);
  Enter(Options("extra", 3, kOneMore));
  EXPECT_FALSE(joined_.contains(3));
  Listen("w0", 1, (*heard_.at(1))->version());
  EXPECT_FALSE(joined_.contains(3));
  // Who does not listen on is not waited for any longer than this.
  Listen("w1", 2, (*heard_.at(2))->version());
  ASSERT_TRUE(joined_.contains(3));
  EXPECT_THAT((*joined_.at(3))->members(), SizeIs(3));
  Enter(Options("fourth", 4, kOneMore));
  EXPECT_FALSE(joined_.contains(4));
  Listen("w1", 2, (*heard_.at(2))->version());
  Pass(RendezvousGroup::kHearing + 100ms);
  EXPECT_TRUE(joined_.contains(4));
}

TEST_F(ChangesTest, OneThatHasNotListenedYetIsWaitedForAsWell) {
  JoinOptions first = Options("w0", 1, 1);
  first.listens = true;
  Enter(first);
  const uint64_t met = VersionOf(1);
  Enter(Options("extra", 2, kOneMore));
  EXPECT_FALSE(joined_.contains(2));
  Listen("w0", 1, met);
  ASSERT_TRUE(heard_.contains(1));
  EXPECT_FALSE(joined_.contains(2));
  Listen("w0", 1, (*heard_.at(1))->version());
  EXPECT_TRUE(joined_.contains(2));
}

TEST_F(ChangesTest, OneThatWasStruckOffIsTakenBackUnderItsRank) {
  Meet(2);
  const uint64_t met = VersionOf(1);
  for (int i = 0; i < 12; ++i) {
    ASSERT_THAT(Renewed(groups_, "w0", 1, met, now_), IsOk());
    Pass(100ms);
  }
  EXPECT_FALSE(Renewed(groups_, "w1", 2, met, now_).ok());
  JoinOptions seat = Options("w1", 2, 2);
  seat.wanted_rank = 1;
  EXPECT_THAT(TakenBack(groups_, seat, met, now_), IsOk());
  const auto change = Renewed(groups_, "w0", 1, met, now_);
  ASSERT_THAT(change, IsOk());
  EXPECT_THAT(Workers((*change)->members()),
              ElementsAre(NamedMember("w1", 2, 1)));
  EXPECT_THAT((*change)->departed(), IsEmpty());
}

TEST_F(ChangesTest, ButNotOnceAnotherOneHasItsPlace) {
  Meet(2);
  const uint64_t met = VersionOf(1);
  EXPECT_THAT(Left(groups_, "w1", 2, now_), IsOk());
  Pass(RendezvousGroup::kSettling);
  Enter(Options("other", 3, 2));
  ASSERT_THAT(joined_.at(3), IsOk());
  JoinOptions seat = Options("w1", 2, 2);
  seat.wanted_rank = 1;
  EXPECT_THAT(TakenBack(groups_, seat, met, now_),
              Fails(StatusCode::kNotFound, "another one's"));
  seat.wanted_rank = -1;
  EXPECT_THAT(TakenBack(groups_, seat, met, now_),
              Fails(StatusCode::kInvalidArgument, "no rank"));
  // Nor into a cluster that has ended.
  seat.wanted_rank = 1;
  seat.cluster = "theirs";
  EXPECT_THAT(TakenBack(groups_, seat, met, now_),
              Fails(StatusCode::kNotFound, "has ended"));
}

// As when the only one that its partners' end has left was stopped for a while.
class AllStruckOffTest : public ChangesTest {
 protected:
  AllStruckOffTest() {
    Meet(2);
    met_ = known_ = VersionOf(1);
    seat_ = Options("w0", 1, 2);
    seat_.wanted_rank = 0;
    groups_.Reap(now_ += 1ms, 1ms);
    for (int i = 0; i < 12; ++i) Pass(100ms);
    EXPECT_FALSE(Listed(groups_, "test").ok());
  }
  // w0 listens on, as it does once it is back.
  void PassWhileItListens(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 100ms) {
      if (heard_.contains(1)) known_ = (*heard_.at(1))->version();
      Listen("w0", 1, known_);
      Pass(100ms);
    }
  }

  uint64_t met_ = 0;
  uint64_t known_ = 0;
  JoinOptions seat_;
};

TEST_F(AllStruckOffTest, OneComesBackToThePartnerThatWaits) {
  Enter(Options("w1", 12, 2));
  EXPECT_THAT(TakenBack(groups_, seat_, met_, now_), IsOk());
  PassWhileItListens(1500ms);
  ASSERT_TRUE(joined_.contains(12));
  ASSERT_THAT(joined_.at(12), IsOk());
  EXPECT_THAT(Workers((*joined_.at(12))->members()),
              ElementsAre(NamedMember("w0", 1, 0), NamedMember("w1", 12, 1)));
}

TEST_F(AllStruckOffTest, OneComesBackBeforeItsPartner) {
  EXPECT_THAT(TakenBack(groups_, seat_, met_, now_), IsOk());
  PassWhileItListens(1500ms);
  Enter(Options("w1", 12, 2));
  PassWhileItListens(500ms);
  ASSERT_TRUE(joined_.contains(12));
  ASSERT_THAT(joined_.at(12), IsOk());
}

// Whom it sees only once all had time to come.
TEST_F(AllStruckOffTest, AllComeBackAndMissNobody) {
  JoinOptions other = Options("w1", 2, 2);
  other.wanted_rank = 1;
  EXPECT_THAT(TakenBack(groups_, seat_, met_, now_), IsOk());
  PassWhileItListens(500ms);
  EXPECT_THAT(TakenBack(groups_, other, met_, now_), IsOk());
  Listen("w1", 2, met_);
  PassWhileItListens(1000ms);
  ASSERT_THAT(heard_.at(1), IsOk());
  EXPECT_THAT(Workers((*heard_.at(1))->members()),
              ElementsAre(NamedMember("w0", 1, 0), NamedMember("w1", 2, 1)));
}

TEST_F(AllStruckOffTest, ButNotWhereASuccessorWaits) {
  Enter(Options("w0", 11, 2));
  EXPECT_THAT(TakenBack(groups_, seat_, met_, now_),
              Fails(StatusCode::kNotFound, "another one's"));
  Enter(Options("w1", 12, 2));
  EXPECT_THAT(joined_.at(11), IsOk());
}

TEST_F(AllStruckOffTest, NorIntoAClusterOfAnotherSize) {
  Enter(Options("w1", 12, 3));
  EXPECT_THAT(TakenBack(groups_, seat_, met_, now_),
              Fails(StatusCode::kNotFound, "another one's"));
}

// A version that members have of an earlier life of the rendezvous, maybe on
// another machine.
class EarlierLife : public ChangesTest,
                    public ::testing::WithParamInterface<uint64_t> {};
constexpr uint64_t kOfAClockThatWasAhead = ~uint64_t{0} / 2;
INSTANTIATE_TEST_SUITE_P(Of, EarlierLife,
                         ::testing::Values(1000, kOfAClockThatWasAhead));

TEST_P(EarlierLife, ItsMembersComeBackBeforeAnybodyElse) {
  const uint64_t before = GetParam();
  JoinOptions extra = Options("extra", 9, kOneMore);
  extra.wanted_rank = 5;
  EXPECT_THAT(TakenBack(groups_, extra, before, now_),
              Fails(StatusCode::kUnavailable, "come back"));
  JoinOptions seat = Options("w1", 2, 2);
  seat.wanted_rank = 1;
  EXPECT_THAT(TakenBack(groups_, seat, before, now_), IsOk());
  EXPECT_THAT(TakenBack(groups_, extra, before, now_), IsOk());
  Enter(Options("other", 7, 2));
  // Until all had time to come nobody is told that the others are gone.
  Listen("w1", 2, before);
  Pass(300ms);
  EXPECT_FALSE(heard_.contains(2));
  seat.self = NamedMember("w0", 1);
  seat.wanted_rank = 0;
  EXPECT_THAT(TakenBack(groups_, seat, before, now_), IsOk());
  for (int i = 0; i < 11; ++i) {
    for (const auto& [name, incarnation] :
         {std::pair("w0", 1), std::pair("w1", 2), std::pair("extra", 9)}) {
      if (i < 9) Listen(name, static_cast<uint64_t>(incarnation), before);
    }
    Pass(100ms);
  }
  ASSERT_TRUE(heard_.contains(2));
  ASSERT_THAT(heard_.at(2), IsOk());
  EXPECT_TRUE((*heard_.at(2))->whole());
  EXPECT_THAT(Workers((*heard_.at(2))->members()),
              ElementsAre(NamedMember("w0", 1, 0), NamedMember("w1", 2, 1),
                          NamedMember("extra", 9, 5)));
  EXPECT_THAT(joined_.at(7), Fails(StatusCode::kAlreadyExists, "too late"));
}

}  // namespace
}  // namespace baton::rpc
