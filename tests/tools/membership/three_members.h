// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "rpc/rendezvous.h"
#include "tests/rpc/peer/keeper.h"
#include "tests/rpc/peer/peer_process.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {

// Alice is here; bob and carol are processes. Bob has a handle of an object of
// alice's, or of carol's, so that he calls them when he is asked to. Confined
// to one thread.
class ThreeMembers {
 public:
  explicit ThreeMembers(Meeting meeting) : meeting_(std::move(meeting)) {
    bob = StartPeer("bob", meeting_);
    carol = StartPeer("carol", meeting_);
    alice_ = JoinAsAlice(meeting_);
    EXPECT_EQ(bob->ReadLine(), "joined");
    EXPECT_EQ(carol->ReadLine(), "joined");
    alice_->WatchMembers([this](const rpc::MemberEvent& event) {
      if (event.kind == rpc::MemberEvent::Kind::kJoined) return;
      MutexLock lock(mutex_);
      gone_.push_back(event.worker.name + ": " + event.cause.ToString());
    });
  }
  rpc::Agent& alice() { return *alice_; }
  // Whom alice has lost.
  std::vector<std::string> Gone() {
    MutexLock lock(mutex_);
    return gone_;
  }
  // Each calls each other.
  void ExpectCallsGoOn() {
    using std::chrono::seconds;
    auto mine = RRef<Counter>::Make(*alice_, std::make_shared<Counter>(7));
    ASSERT_THAT(alice_->Async<&Keep>("bob", mine).Await(seconds(10)), IsOk());
    EXPECT_EQ(*alice_->Async<&UseKept>("bob").Await(seconds(10)), 7);
    auto of_carol =
        rpc::Create<Counter>(*alice_, "carol", 5).Await(seconds(10));
    ASSERT_THAT(of_carol, IsOk());
    ASSERT_THAT(alice_->Async<&Keep>("bob", *of_carol).Await(seconds(10)),
                IsOk());
    EXPECT_EQ(*alice_->Async<&UseKept>("bob").Await(seconds(10)), 5);
    auto of_bob = rpc::Create<Counter>(*alice_, "bob", 3).Await(seconds(10));
    ASSERT_THAT(of_bob, IsOk());
    ASSERT_THAT(alice_->Async<&Keep>("carol", *of_bob).Await(seconds(10)),
                IsOk());
    EXPECT_EQ(*alice_->Async<&UseKept>("carol").Await(seconds(10)), 3);
  }
  // How many the rendezvous knows.
  size_t Listed() const {
    const auto listed =
        rpc::ListWorkers(meeting_.rendezvous, "baton", std::chrono::seconds(5));
    return listed.ok() ? listed->size() : 0;
  }
  // Joins as one more, and is called.
  std::unique_ptr<ChildProcess> AddAndCall(const std::string& name) {
    Meeting extra = meeting_;
    extra.world_size = rpc::kOneMore;
    auto added = StartPeer(name, extra);
    EXPECT_EQ(added->ReadLine(), "joined");
    EXPECT_EQ(*alice_->Async<&Sum>(name, 1, 2).Await(std::chrono::seconds(10)),
              3);
    return added;
  }

  std::unique_ptr<ChildProcess> bob, carol;

 private:
  const Meeting meeting_;
  Mutex mutex_;
  std::vector<std::string> gone_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<rpc::Agent> alice_;
};

}  // namespace baton::testing
