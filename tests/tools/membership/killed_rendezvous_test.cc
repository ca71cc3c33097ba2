// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The program baton-rendezvous is killed and started again at its address,
// while those who met there call one another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>

#include "core/mutex.h"
#include "rpc/rendezvous.h"
#include "tests/rpc/peer/keeper.h"
#include "tests/rpc/peer/peer_process.h"
#include "tests/support/kills.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

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

// Alice is here; bob and carol are processes. Bob has a handle of an object of
// alice's, or of carol's, so that he calls them when he is asked to.
class KilledRendezvous : public ::testing::Test {
 protected:
  KilledRendezvous() : meeting_{rendezvous_.address(), 3, kLease} {
    bob_ = StartPeer("bob", meeting_);
    carol_ = StartPeer("carol", meeting_);
    alice_ = JoinAsAlice(meeting_);
    EXPECT_EQ(bob_->ReadLine(), "joined");
    EXPECT_EQ(carol_->ReadLine(), "joined");
    alice_->WatchMembers([this](const rpc::MemberEvent& event) {
      if (event.kind == rpc::MemberEvent::Kind::kJoined) return;
      MutexLock lock(mutex_);
      gone_.push_back(event.worker.name + ": " + event.cause.ToString());
    });
  }
  std::vector<std::string> Gone() {
    MutexLock lock(mutex_);
    return gone_;
  }
  // Each calls each other.
  void ExpectCallsGoOn() {
    auto mine = RRef<Counter>::Make(*alice_, std::make_shared<Counter>(7));
    ASSERT_THAT(alice_->Async<&Keep>("bob", mine).Await(10s), IsOk());
    EXPECT_EQ(*alice_->Async<&UseKept>("bob").Await(10s), 7);
    auto of_carol = rpc::Create<Counter>(*alice_, "carol", 5).Await(10s);
    ASSERT_THAT(of_carol, IsOk());
    ASSERT_THAT(alice_->Async<&Keep>("bob", *of_carol).Await(10s), IsOk());
    EXPECT_EQ(*alice_->Async<&UseKept>("bob").Await(10s), 5);
    auto of_bob = rpc::Create<Counter>(*alice_, "bob", 3).Await(10s);
    ASSERT_THAT(of_bob, IsOk());
    ASSERT_THAT(alice_->Async<&Keep>("carol", *of_bob).Await(10s), IsOk());
    EXPECT_EQ(*alice_->Async<&UseKept>("carol").Await(10s), 3);
  }
  size_t Listed() {
    const auto listed = rpc::ListWorkers(rendezvous_.address(), "baton", 5s);
    return listed.ok() ? listed->size() : 0;
  }
  // Kills it and starts it again; gives how long it took until `members` were
  // back.
  std::chrono::milliseconds KillAndAwait(size_t members) {
    rendezvous_.Kill();
    ExpectCallsGoOn();
    rendezvous_.StartAgain();
    const auto start = Clock::now();
    EXPECT_TRUE(Within(20s, [&] { return Listed() == members; }));
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                 start);
  }

  static constexpr auto kLease = 1000ms;
  // Of a busy machine, for what is promised within the lease.
  static constexpr auto kSlack = 1000ms;
  RendezvousProcess rendezvous_;
  const Meeting meeting_;
  std::unique_ptr<ChildProcess> bob_, carol_;
  Mutex mutex_;
  std::vector<std::string> gone_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<rpc::Agent> alice_;
};

// Those who were not there within the lease would never be listed.
TEST_F(KilledRendezvous, HasAllItsMembersAgainAndTheyHaveLostNobody) {
  std::chrono::milliseconds longest{0};
  for (int i = 0; i < Kills(3); ++i) {
    longest = std::max(longest, KillAndAwait(3));
    ExpectCallsGoOn();
  }
  EXPECT_LT(longest, kLease + kSlack);
  RecordProperty("longest_ms", static_cast<int>(longest.count()));
  EXPECT_THAT(Gone(), ::testing::IsEmpty());
  EXPECT_EQ(alice_->workers().size(), 3u);
}

TEST_F(KilledRendezvous, LetsNewcomersInAfterwards) {
  KillAndAwait(3);
  Meeting extra = meeting_;
  extra.world_size = rpc::kOneMore;
  const auto dave = StartPeer("dave", extra);
  EXPECT_EQ(dave->ReadLine(), "joined");
  EXPECT_EQ(*alice_->Async<&Sum>("dave", 1, 2).Await(10s), 3);
  // Who has come later is taken back, too.
  KillAndAwait(4);
  const auto erin = StartPeer("erin", extra);
  EXPECT_EQ(erin->ReadLine(), "joined");
  EXPECT_EQ(*alice_->Async<&Sum>("erin", 1, 2).Await(10s), 3);
  EXPECT_EQ(alice_->Find("dave")->rank, rpc::Rank{3});
  EXPECT_EQ(alice_->Find("erin")->rank, rpc::Rank{4});
  EXPECT_THAT(Gone(), ::testing::IsEmpty());
}

TEST_F(KilledRendezvous, MissesWhoDiedWithIt) {
  rendezvous_.Kill();
  bob_->Kill(SIGKILL);
  bob_->Wait();
  rendezvous_.StartAgain();
  // His successor need not wait for one who never comes back.
  bob_ = StartPeer("bob", meeting_);
  EXPECT_EQ(bob_->ReadLine(), "joined");
  ASSERT_TRUE(Within(20s, [&] { return Listed() == 3; }));
  EXPECT_EQ(*alice_->Async<&Sum>("bob", 1, 2).Await(10s), 3);
  ExpectCallsGoOn();
}

}  // namespace
}  // namespace baton::testing
