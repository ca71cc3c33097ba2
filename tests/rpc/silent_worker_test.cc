// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "rpc/rendezvous.h"
#include "tests/rpc/heard.h"
#include "tests/rpc/peer/keeper.h"
#include "tests/rpc/peer/peer_process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using Clock = std::chrono::steady_clock;

// Alice is here; bob is a process that is stopped, resumed and killed.
class SilentWorkerTest : public ::testing::Test {
 protected:
  explicit SilentWorkerTest(std::chrono::milliseconds lease = kLease)
      : meeting_{server_->address(), 2, lease} {
    bob_ = StartPeer("bob", meeting_);
    alice_ = JoinAsAlice(meeting_);
    EXPECT_EQ(bob_->ReadLine(), "joined");
  }
  rpc::Rank bob_rank() { return alice_->Find("bob")->rank; }

  static constexpr auto kLease = 1000ms;
  std::unique_ptr<rpc::RendezvousServer> server_ =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
  const Meeting meeting_;
  std::unique_ptr<ChildProcess> bob_;
  std::unique_ptr<rpc::Agent> alice_;
};

// Whom the lease does not help to find out.
class KilledWorkerTest : public SilentWorkerTest {
 protected:
  KilledWorkerTest() : SilentWorkerTest(20s) {}
};

// Without a lease the call would wait for ever. What part of the lease may pass
// is said in failure_detector_test.cc, by a clock of its own.
TEST_F(SilentWorkerTest, AStoppedProcessIsLostByItsLease) {
  RRef<Counter> mine =
      RRef<Counter>::Make(*alice_, std::make_shared<Counter>(1));
  ASSERT_THAT(alice_->Async<&Keep>("bob", mine).Await(), IsOk());
  auto theirs = rpc::Create<Counter>(*alice_, "bob", 1).Await();
  ASSERT_THAT(theirs, IsOk());
  Future<int> call = alice_->Async<&WaitForever>("bob");
  const auto start = Clock::now();
  bob_->Kill(SIGSTOP);
  EXPECT_THAT(call.Await(10s), Fails(StatusCode::kUnavailable, "is silent"));
  EXPECT_GT(Clock::now() - start, kLease / 4);  // not for one missing beat
  EXPECT_THAT(theirs->Async<&Counter::Get>().Await(10s),
              Fails(StatusCode::kUnavailable, "bob"));
  mine = {};
  EXPECT_TRUE(Counter::AllGone());  // what bob holds does not count any more
  EXPECT_TRUE(alice_->AwaitIdle(5s)) << alice_->GetDebugInfo().ToString();
}

TEST_F(SilentWorkerTest, AShutdownDoesNotWaitForAStoppedProcess) {
  ASSERT_THAT(alice_->Async<&Measure>("bob", Tensor::Zeros({100'000})).Await(),
              IsOk());
  bob_->Kill(SIGSTOP);
  std::vector<Future<int>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(alice_->Async<&Measure>("bob", Tensor::Zeros({16 << 20})));
  }
  const auto start = Clock::now();
  // Whether the calls count as left behind depends on when bob is found silent.
  alice_->Shutdown({.timeout = 500ms}).IgnoreError();
  for (Future<int>& call : calls) EXPECT_FALSE(call.Await(10s).ok());
  alice_.reset();
  // Who waited for bob would wait for ever.
  EXPECT_LT(Clock::now() - start, 10s);
}

TEST_F(SilentWorkerTest, OneThatResumesIsRefusedAsItsPastSelf) {
  RRef<Counter> mine =
      RRef<Counter>::Make(*alice_, std::make_shared<Counter>(7));
  ASSERT_THAT(alice_->Async<&Keep>("bob", mine).Await(), IsOk());
  EXPECT_EQ(*alice_->Async<&UseKept>("bob").Await(), 7);
  bob_->Kill(SIGSTOP);
  EXPECT_FALSE(alice_->Async<&WaitForever>("bob").Await(10s).ok());
  bob_->Kill(SIGCONT);
  ASSERT_TRUE(Within(20s, [&] { return alice_->workers().size() == 2; }));
  EXPECT_THAT(
      alice_->Async<&UseKept>("bob").Await(10s),
      Fails(StatusCode::kUnavailable, "worker alice has given up worker bob"));
  const auto sum = alice_->Async<&Sum>("bob", 1, 2).Await(10s);
  ASSERT_THAT(sum, IsOk());
  EXPECT_EQ(*sum, 3);
}

TEST_F(KilledWorkerTest, IsKnownLongBeforeItsLease) {
  Future<int> call = alice_->Async<&WaitForever>("bob");
  ASSERT_THAT(alice_->Async<&Sum>("bob", 1, 2).Await(), IsOk());
  const auto start = Clock::now();
  bob_->Kill(SIGKILL);
  EXPECT_THAT(call.Await(10s), Fails(StatusCode::kUnavailable, "bob"));
  RecordProperty("ms", static_cast<int>((Clock::now() - start) / 1ms));
}

TEST_F(SilentWorkerTest, TheNameOfAKilledProcessIsFreeForItsSuccessor) {
  bob_->Kill(SIGKILL);
  const auto successor = StartPeer("bob", meeting_);
  EXPECT_EQ(successor->ReadLine(), "joined");
  // Alice knows it by then.
  const auto sum = alice_->Async<&Sum>("bob", 1, 2).Await(10s);
  ASSERT_THAT(sum, IsOk());
  EXPECT_EQ(*sum, 3);
}

TEST_F(SilentWorkerTest, TheRankOfAKilledProcessIsThatOfItsSuccessor) {
  ASSERT_THAT(alice_->Async<&Sum>("bob", 1, 2).Await(), IsOk());
  const rpc::Rank rank = bob_rank();
  std::string before = "bob";
  for (const char* name : {"carol", "dave", "erin"}) {
    bob_->Kill(SIGKILL);
    ASSERT_TRUE(Within(20s, [&] {
      return rpc::ListWorkers(server_->address(), "baton", 20s)->size() == 1;
    }));
    bob_ = StartPeer(name, meeting_);
    EXPECT_EQ(bob_->ReadLine(), "joined");
    const auto sum = alice_->Async<&Sum>(rank, 1, 2).Await(10s);
    ASSERT_THAT(sum, IsOk());
    EXPECT_EQ(alice_->Find(rank)->name, name);
    EXPECT_EQ(alice_->workers().size(), 2u);
    EXPECT_THAT(alice_->Async<&Sum>(before, 1, 2).Await(10s),
                Fails(StatusCode::kUnavailable, before));
    before = name;
  }
}

TEST_F(SilentWorkerTest, WhatAKilledProcessOwnedIsMadeAnewByItsSuccessor) {
  auto counter = rpc::Create<Counter>(*alice_, "bob", 1).Await();
  ASSERT_THAT(counter, IsOk());
  const HeardPtr heard = Listen(*counter);
  bob_->Kill(SIGKILL);
  ExpectOnce(heard, "worker bob and what it had is lost");
  const auto successor = StartPeer("bob", meeting_);
  EXPECT_EQ(successor->ReadLine(), "joined");
  const auto anew = rpc::Create<Counter>(*alice_, "bob", 2).Await();
  ASSERT_THAT(anew, IsOk());
  EXPECT_EQ(*anew->Async<&Counter::Get>().Await(), 2);
}

TEST_F(SilentWorkerTest, AStoppedOwnerIsLostOnceEvenIfItResumes) {
  auto counter = rpc::Create<Counter>(*alice_, "bob", 1).Await();
  ASSERT_THAT(counter, IsOk());
  const HeardPtr heard = Listen(*counter);
  bob_->Kill(SIGSTOP);
  ExpectOnce(heard, "bob");
  bob_->Kill(SIGCONT);
  ASSERT_TRUE(Within(20s, [&] { return alice_->workers().size() == 2; }));
  ASSERT_THAT(alice_->Async<&Sum>("bob", 1, 2).Await(10s), IsOk());
  EXPECT_EQ(heard->times, 1);
  ExpectOnce(Listen(*counter), "bob");
}

TEST_F(SilentWorkerTest, OneWhosePoolIsBusyIsNotSilent) {
  std::vector<Future<int>> calls;
  for (int i = 0; i < 6; ++i) {
    calls.push_back(
        alice_->Async<&Occupy>("bob", static_cast<int>(kLease / 1ms)));
  }
  for (Future<int>& call : calls) EXPECT_THAT(call.Await(30s), IsOk());
}

}  // namespace
}  // namespace baton::testing
