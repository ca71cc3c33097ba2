// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <limits>

#include "rpc/transports/deliveries.h"
#include "tests/rpc/transport_worker.h"

namespace baton::rpc {
namespace {

constexpr size_t kLimit = 1000, kMessageLimit = 5000;

class HeldMessagesTest : public ::testing::Test {
 protected:
  HeldMessagesTest() { gate_->Open(&mailbox_); }
  ~HeldMessagesTest() override { gate_->Close(); }

  absl::Status Hold(const std::string& header,
                    const std::vector<Promise<void>>& promises,
                    size_t bytes_here = 10, bool small = false) {
    PendingMessage late{.message = {header, {}},
                        .awaited = {},
                        .bytes = 100 + bytes_here,
                        .bytes_here = bytes_here,
                        .small = small};
    for (const auto& promise : promises)
      late.awaited.push_back(promise.future());
    return held_->Hold(bob_, std::move(late));
  }
  std::string Last(size_t count) {
    return mailbox_.Await(count).back().message.header;
  }
  // What was delivered by now.
  size_t Delivered() {
    const Promise<void> done;
    deliveries_->PushTask([done] { done.Set(absl::OkStatus()); });
    deliveries_->Post();
    EXPECT_TRUE(done.future().Await(kPatience).ok());
    return mailbox_.count();
  }

  const WorkerInfo bob_{"bob", Rank{1}, 2, "127.0.0.1:1"};
  Mailbox mailbox_;
  std::atomic<int> drained_{0}, failed_{0};
  const std::shared_ptr<HandlerGate> gate_ = std::make_shared<HandlerGate>();
  const std::shared_ptr<ThreadPool> executor_ =
      std::make_shared<ThreadPool>(1, "test-held");
  const std::shared_ptr<Deliveries> deliveries_ =
      std::make_shared<Deliveries>(gate_, executor_, size_t{1} << 20, [] {});
  const std::shared_ptr<PendingMessages> held_ =
      std::make_shared<PendingMessages>(
          deliveries_, kLimit, kMessageLimit, [this] { ++drained_; },
          [this](const absl::Status&) { ++failed_; });
};

TEST_F(HeldMessagesTest, OneIsDeliveredWhenAllHasCome) {
  const Promise<void> first, second;
  ASSERT_TRUE(Hold("late", {first, second}).ok());
  second.Set(absl::OkStatus());
  EXPECT_EQ(Delivered(), 0u);
  first.Set(absl::OkStatus());
  EXPECT_EQ(Last(1), "late");
}

TEST_F(HeldMessagesTest, WhatHadComeBeforeIsDeliveredAtOnce) {
  const Promise<void> promise;
  promise.Set(absl::OkStatus());
  ASSERT_TRUE(Hold("early", {promise}).ok());
  EXPECT_EQ(Last(1), "early");
}

TEST_F(HeldMessagesTest, OthersOvertakeIt) {
  const Promise<void> first, second;
  ASSERT_TRUE(Hold("first", {first}).ok());
  ASSERT_TRUE(Hold("second", {second}).ok());
  deliveries_->Push(bob_, {"small", {}}, 5);
  deliveries_->Post();
  EXPECT_EQ(Last(1), "small");
  second.Set(absl::OkStatus());
  EXPECT_EQ(Last(2), "second");
  first.Set(absl::OkStatus());
  EXPECT_EQ(Last(3), "first");
}

TEST_F(HeldMessagesTest, WhatDoesNotComeIsDropped) {
  const Promise<void> first, second;
  ASSERT_TRUE(Hold("late", {first, second}, 2 * kLimit).ok());
  EXPECT_FALSE(held_->has_room());
  first.Set(absl::CancelledError("the connection has ended"));
  EXPECT_TRUE(held_->has_room()) << "its bytes are given back";
  second.Set(absl::OkStatus());
  EXPECT_EQ(Delivered(), 0u);
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(failed_, 1) << "somebody waits for the message";
}

TEST_F(HeldMessagesTest, WithoutALimitNothingIsRefused) {
  const size_t most = std::numeric_limits<size_t>::max();
  const auto held = std::make_shared<PendingMessages>(
      deliveries_, most - 1, most, [] {}, [](const absl::Status&) {});
  const Promise<void> never;
  PendingMessage late{.message = {"late", {}},
                      .awaited = {never.future()},
                      .bytes = 100,
                      .bytes_here = 100};
  EXPECT_TRUE(held->Hold(bob_, std::move(late)).ok());
  EXPECT_TRUE(held->has_room());
}

TEST_F(HeldMessagesTest, OfALostConnectionNothingIsDelivered) {
  const Promise<void> promise;
  ASSERT_TRUE(Hold("late", {promise}).ok());
  held_->Drop();
  promise.Set(absl::CancelledError("it has ended"));
  EXPECT_EQ(Delivered(), 0u);
  EXPECT_EQ(failed_, 0) << "everybody knows";
  const Promise<void> next;
  ASSERT_TRUE(Hold("of the next", {next}).ok());
  next.Set(absl::OkStatus());
  EXPECT_EQ(Last(1), "of the next");
}

TEST_F(HeldMessagesTest, AboveTheLimitThereIsNoRoomUntilHalfOfItIsFree) {
  const Promise<void> first, second, third;
  ASSERT_TRUE(Hold("first", {first}, 400).ok());
  EXPECT_TRUE(held_->has_room());
  ASSERT_TRUE(Hold("second", {second}, 400).ok());
  EXPECT_FALSE(held_->has_room()) << "with what a message costs";
  first.Set(absl::OkStatus());
  EXPECT_EQ(Delivered(), 1u);
  EXPECT_FALSE(held_->has_room()) << "each message would pause and resume";
  ASSERT_TRUE(Hold("third", {third}, 10).ok());
  second.Set(absl::OkStatus());
  EXPECT_TRUE(held_->has_room());
  EXPECT_EQ(Delivered(), 2u);
  EXPECT_EQ(drained_, 1);
  third.Set(absl::OkStatus());
  EXPECT_EQ(Delivered(), 3u);
  EXPECT_EQ(drained_, 1);
}

TEST_F(HeldMessagesTest, ALostConnectionLeavesRoomToTheNext) {
  const Promise<void> never;
  ASSERT_TRUE(Hold("large", {never}, 2 * kLimit).ok());
  EXPECT_FALSE(held_->has_room());
  held_->Drop();
  EXPECT_TRUE(held_->has_room());
}

// What they wait for may be behind what a large one waits for.
TEST_F(HeldMessagesTest, SmallOnesTakeNoRoomFromLargeOnes) {
  const Promise<void> never;
  ASSERT_TRUE(Hold("small", {never}, 2 * kLimit, true).ok());
  EXPECT_TRUE(held_->has_room());
  ASSERT_TRUE(Hold("large", {never}, 2 * kLimit).ok());
  EXPECT_FALSE(held_->has_room());
}

TEST_F(HeldMessagesTest, TellsWhenNothingIsHeldAnyMore) {
  EXPECT_FALSE(held_->WhenNone([] { FAIL() << "there was nothing"; }));
  const Promise<void> first, second;
  ASSERT_TRUE(Hold("first", {first}).ok());
  ASSERT_TRUE(Hold("second", {second}).ok());
  size_t delivered_then = 0;
  EXPECT_TRUE(held_->WhenNone([&] { delivered_then = mailbox_.count(); }));
  second.Set(absl::OkStatus());
  EXPECT_EQ(Delivered(), 1u);
  EXPECT_EQ(delivered_then, 0u);
  first.Set(absl::OkStatus());
  EXPECT_EQ(Delivered(), 2u);
  EXPECT_EQ(delivered_then, 2u);
}

TEST_F(HeldMessagesTest, OfALostConnectionNobodyIsToldThatNothingIsHeld) {
  const Promise<void> promise;
  ASSERT_TRUE(Hold("late", {promise}).ok());
  EXPECT_TRUE(held_->WhenNone([] { FAIL() << "it was dropped"; }));
  held_->Drop();
  const Promise<void> next;
  ASSERT_TRUE(Hold("of the next", {next}).ok());
  next.Set(absl::OkStatus());
  EXPECT_EQ(Delivered(), 1u);
}

TEST_F(HeldMessagesTest, MoreThanAnHonestPeerHasOutIsRefused) {
  const Promise<void> never;
  absl::Status status;
  size_t bytes = 0;
  for (; status.ok(); bytes += size_t{1} << 20)
    status = Hold("more", {never}, size_t{1} << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(bytes, size_t{60} << 20);
  EXPECT_LT(bytes, size_t{140} << 20);
}

}  // namespace
}  // namespace baton::rpc
