// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Of three nodes of etcd and three baton-rendezvous one is killed or stopped,
// while those who met there call one another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "rpc/rendezvous.h"
#include "tests/support/etcd_nodes.h"
#include "tests/support/kills.h"
#include "tests/support/within.h"
#include "tests/tools/membership/candidate_processes.h"
#include "tests/tools/membership/three_members.h"

namespace baton::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class EtcdRendezvous : public ::testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  EtcdRendezvous() { EXPECT_TRUE(members_.Listed() == 3); }

  static milliseconds Since(Clock::time_point start) {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  }
  // Of all kills: after how long a newcomer had joined.
  void Record(std::vector<milliseconds> times, const char* what) {
    std::sort(times.begin(), times.end());
    RecordProperty(std::string(what) + "_median_ms",
                   static_cast<int>(times[times.size() / 2].count()));
    RecordProperty(std::string(what) + "_longest_ms",
                   static_cast<int>(times.back().count()));
  }
  // Who is listed, with rank and incarnation.
  std::vector<std::string> Seats() const {
    std::vector<std::string> seats;
    const auto listed = rpc::ListWorkers(nodes_.address(), "baton", seconds(5));
    EXPECT_THAT(listed, IsOk());
    for (const rpc::WorkerInfo& worker : *listed) {
      seats.push_back(absl::StrCat(static_cast<int>(worker.rank), " ",
                                   worker.name, " ", worker.incarnation));
    }
    return seats;
  }
  // Joins, calls, leaves.
  void ExpectANewcomerIsLetIn() {
    const auto dave = members_.AddAndCall("dave");
    dave->CloseInput();
    dave->Wait();
    EXPECT_TRUE(Within(seconds(20), [&] { return members_.Listed() == 3; }));
  }

  static constexpr milliseconds kLease{2000};
  static constexpr seconds kTtl{2};
  // etcd looks for ended leases every half second, and the others for a place
  // that is free every 0.2 s; the rest is for a busy machine.
  static constexpr milliseconds kTakeOver = kTtl + milliseconds(700);
  static constexpr milliseconds kSlack{3000};

  EtcdNodes nodes_;
  CandidateProcesses candidates_{nodes_.address(), kTtl.count()};
  size_t serving_ = candidates_.AwaitServing();
  ThreeMembers members_{{nodes_.address(), 3, kLease}};
};

// Each in turn, so one of them led the others.
TEST_F(EtcdRendezvous, DoesWithoutAnyNodeOfEtcd) {
  std::vector<milliseconds> times;
  for (int i = 0; i < Kills(3); ++i) {
    const size_t node = static_cast<size_t>(i) % EtcdNodes::kCount;
    nodes_.Kill(node);
    const auto start = Clock::now();
    ExpectANewcomerIsLetIn();
    times.push_back(Since(start));
    members_.ExpectCallsGoOn();
    nodes_.StartAgain(node);
    EXPECT_TRUE(nodes_.AwaitServing());
  }
  Record(times, "newcomer");
  EXPECT_THAT(members_.Gone(), ::testing::Each(::testing::HasSubstr("dave")));
  EXPECT_EQ(members_.alice().workers().size(), 3u);
}

TEST_F(EtcdRendezvous, AnotherServesAndHasAllMembersAgain) {
  std::vector<milliseconds> taken, back, newcomer;
  const std::vector<std::string> before = Seats();
  for (int i = 0; i < Kills(2); ++i) {
    candidates_.Kill(serving_);
    const auto start = Clock::now();
    const size_t killed = serving_;
    serving_ = candidates_.AwaitServing();
    ASSERT_LT(serving_, CandidateProcesses::kCount);
    taken.push_back(Since(start));
    EXPECT_LT(taken.back(), kTakeOver + kSlack);
    EXPECT_TRUE(Within(seconds(20), [&] { return members_.Listed() == 3; }));
    back.push_back(Since(start));
    EXPECT_LT(back.back(), kTakeOver + kLease + kSlack);
    ExpectANewcomerIsLetIn();
    newcomer.push_back(Since(start));
    members_.ExpectCallsGoOn();
    candidates_.Start(killed);
  }
  Record(taken, "taken");
  Record(back, "back");
  Record(newcomer, "newcomer");
  EXPECT_THAT(members_.Gone(), ::testing::Each(::testing::HasSubstr("dave")));
  EXPECT_EQ(Seats(), before);
  EXPECT_EQ(members_.alice().workers().size(), 3u);
}

TEST_F(EtcdRendezvous, OneThatWasStoppedRefusesWhenItWakesUp) {
  candidates_.Stop(serving_);
  const size_t other = candidates_.AwaitServing();
  ASSERT_LT(other, CandidateProcesses::kCount);
  EXPECT_TRUE(Within(seconds(20), [&] { return members_.Listed() == 3; }));
  // Asked while it is stopped, it answers when it wakes up, first of all;
  // unless it finds before that it has been away for too long.
  const auto ask = [this] {
    return rpc::ListWorkers(candidates_.address(serving_), "baton", seconds(20))
        .status();
  };
  absl::Status asked;
  std::thread asker([&] { asked = ask(); });
  candidates_.Continue(serving_);
  asker.join();
  EXPECT_THAT(asked, Fails(absl::StatusCode::kUnavailable, "rendezvous at"));
  EXPECT_EQ(candidates_.AwaitStandingBy(serving_),
            candidates_.address(serving_));
  EXPECT_TRUE(Within(seconds(20), [&] {
    return ask().message().find("it stands by") != std::string::npos;
  }));
  ExpectANewcomerIsLetIn();
  EXPECT_THAT(members_.Gone(), ::testing::Each(::testing::HasSubstr("dave")));
}

}  // namespace
}  // namespace baton::testing
