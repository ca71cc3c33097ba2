// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The program baton-rendezvous is killed and started again at its address,
// while those who met there call one another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/kills.h"
#include "tests/support/program_path.h"
#include "tests/support/within.h"
#include "tests/tools/membership/three_members.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The process, and its address in every life.
class RendezvousProcess {
 public:
  RendezvousProcess() { Start("127.0.0.1:0"); }
  const std::string& address() const { return address_; }
  void Kill() {
    process_->Kill(SIGKILL);
    process_->Wait();
  }
  void StartAgain() { Start(address_); }

 private:
  void Start(const std::string& listen) {
    process_ = std::make_unique<ChildProcess>(std::vector<std::string>{
        ProgramPath("baton-rendezvous"), "--listen=" + listen});
    const std::string before = "rendezvous at ", line = process_->ReadLine();
    ASSERT_EQ(line.rfind(before, 0), 0u) << line;
    address_ = line.substr(before.size());
  }

  std::unique_ptr<ChildProcess> process_;
  std::string address_;
};

class KilledRendezvous : public ::testing::Test {
 protected:
  // Kills it and starts it again; gives how long it took until `members` were
  // back.
  std::chrono::milliseconds KillAndAwait(size_t members) {
    rendezvous_.Kill();
    members_.ExpectCallsGoOn();
    rendezvous_.StartAgain();
    const auto start = Clock::now();
    EXPECT_TRUE(Within(20s, [&] { return members_.Listed() == members; }));
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                 start);
  }

  static constexpr auto kLease = 1000ms;
  // Of a busy machine, for what is promised within the lease.
  static constexpr auto kSlack = 1000ms;
  RendezvousProcess rendezvous_;
  const Meeting meeting_{rendezvous_.address(), 3, kLease};
  ThreeMembers members_{meeting_};
};

// Those who were not there within the lease would never be listed.
TEST_F(KilledRendezvous, HasAllItsMembersAgainAndTheyHaveLostNobody) {
  std::chrono::milliseconds longest{0};
  for (int i = 0; i < Kills(3); ++i) {
    longest = std::max(longest, KillAndAwait(3));
    members_.ExpectCallsGoOn();
  }
  EXPECT_LT(longest, kLease + kSlack);
  RecordProperty("longest_ms", static_cast<int>(longest.count()));
  EXPECT_THAT(members_.Gone(), ::testing::IsEmpty());
  EXPECT_EQ(members_.alice().workers().size(), 3u);
}

TEST_F(KilledRendezvous, LetsNewcomersInAfterwards) {
  KillAndAwait(3);
  const auto dave = members_.AddAndCall("dave");
  // Who has come later is taken back, too.
  KillAndAwait(4);
  const auto erin = members_.AddAndCall("erin");
  EXPECT_EQ(members_.alice().Find("dave")->rank, rpc::Rank{3});
  EXPECT_EQ(members_.alice().Find("erin")->rank, rpc::Rank{4});
  EXPECT_THAT(members_.Gone(), ::testing::IsEmpty());
}

TEST_F(KilledRendezvous, MissesWhoDiedWithIt) {
  rendezvous_.Kill();
  members_.bob->Kill(SIGKILL);
  members_.bob->Wait();
  rendezvous_.StartAgain();
  // His successor need not wait for one who never comes back.
  members_.bob = StartPeer("bob", meeting_);
  EXPECT_EQ(members_.bob->ReadLine(), "joined");
  ASSERT_TRUE(Within(20s, [&] { return members_.Listed() == 3; }));
  EXPECT_EQ(*members_.alice().Async<&Sum>("bob", 1, 2).Await(10s), 3);
  members_.ExpectCallsGoOn();
}

}  // namespace
}  // namespace baton::testing
