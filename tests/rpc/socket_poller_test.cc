// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/socket_poller.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>

#include "core/future.h"

namespace baton::rpc {
namespace {

using Then = SocketPoller::Then;
constexpr std::chrono::seconds kSoon{30};

class SocketPollerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    here_ = std::make_shared<Fd>(ends[0]);
    there_ = Fd(ends[1]);
    ASSERT_TRUE(poller_->Start().ok());
  }
  void Write(char byte) { EXPECT_EQ(send(there_.get(), &byte, 1, 0), 1); }

  std::shared_ptr<Fd> here_;
  Fd there_;
  std::shared_ptr<SocketPoller> poller_ = SocketPoller::Make("test-poller");
};

TEST_F(SocketPollerTest, StepsComeAtOnceThenWhenReadyUntilTheEnd) {
  const Promise<void> first;
  const Promise<std::string> all;
  std::string got;
  const auto added =
      poller_->Add(here_, SocketPoller::For::kReading, [&, first, all] {
        first.Set(absl::OkStatus());
        char byte;
        while (recv(here_->get(), &byte, 1, MSG_DONTWAIT) == 1) {
          got.push_back(byte);
        }
        if (got.size() < 3) return Then::kWhenReady;
        all.Set(got);
        return Then::kEnd;
      });
  ASSERT_TRUE(added.ok());
  ASSERT_TRUE(first.future().Await(kSoon).ok());
  for (const char byte : {'a', 'b', 'c', 'd'}) Write(byte);
  ASSERT_TRUE(all.future().Await(kSoon).ok());
  EXPECT_EQ(all.future().Await(kSoon)->substr(0, 3), "abc");
  poller_.reset();
  EXPECT_EQ(here_.use_count(), 1);
}

TEST_F(SocketPollerTest, WhoWaitsToBeWokenIsNotToldThatItIsReady) {
  std::atomic<int> steps{0};
  Promise<void> woken;
  const auto added =
      poller_->Add(here_, SocketPoller::For::kReading, [&, woken] {
        if (++steps == 1) return Then::kWhenWoken;
        woken.Set(absl::OkStatus());
        return Then::kEnd;
      });
  ASSERT_TRUE(added.ok());
  Write('a');
  Promise<void> later;
  poller_->After(std::chrono::milliseconds(5),
                 [later] { later.Set(absl::OkStatus()); });
  ASSERT_TRUE(later.future().Await(kSoon).ok());
  EXPECT_EQ(steps, 1);
  poller_->Wake(*added);
  ASSERT_TRUE(woken.future().Await(kSoon).ok());
  poller_->Wake(*added);  // nobody is there
}

TEST_F(SocketPollerTest, AStepMayDropThePoller) {
  const Promise<void> done;
  const Promise<void> added;
  ASSERT_TRUE(poller_
                  ->Add(here_, SocketPoller::For::kWriting,
                        [this, added, done] {
                          EXPECT_TRUE(added.future().Await(kSoon).ok());
                          poller_.reset();
                          done.Set(absl::OkStatus());
                          return Then::kAgain;
                        })
                  .ok());
  added.Set(absl::OkStatus());
  EXPECT_TRUE(done.future().Await(kSoon).ok());
}

TEST_F(SocketPollerTest, WhatIsLeftIsDropped) {
  ASSERT_TRUE(poller_
                  ->Add(here_, SocketPoller::For::kReading,
                        [] { return Then::kWhenReady; })
                  .ok());
  poller_->After(std::chrono::hours(1), [kept = here_] {});
  poller_.reset();
  EXPECT_EQ(here_.use_count(), 1);
}

}  // namespace
}  // namespace baton::rpc
