// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/control_channel.h"

#include <gtest/gtest.h>

namespace baton::rpc::internal {
namespace {

using namespace std::chrono_literals;

class ControlChannelTest : public ::testing::Test {
 protected:
  void Push(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      alice_.Push({ControlKind::kDelete, {1, ++pushed_}, {1, pushed_}},
                  [this] { ++acked_; });
    }
  }
  // Items that alice sends now, all of which get lost.
  uint64_t Lose() {
    uint64_t lost = 0;
    while (alice_.Due(now_, kResendAfter)) {
      lost += alice_.Take(now_, kResendAfter).items.size();
    }
    return lost;
  }
  // Frames go both ways until both are quiet, and no time passes.
  void Exchange() {
    while (alice_.Due(now_, kResendAfter) || bob_.Due(now_, kResendAfter)) {
      if (alice_.Due(now_, kResendAfter)) Deliver(alice_, bob_);
      if (bob_.Due(now_, kResendAfter)) Deliver(bob_, alice_);
    }
  }
  void Deliver(ControlChannel& from, ControlChannel& to) {
    const auto received = to.Receive(from.Take(now_, kResendAfter));
    for (const ControlItem& item : received.items) {
      EXPECT_EQ(item.id.number, ++delivered_);  // once and in order
    }
    for (const auto& acked : received.acked) acked();
  }

  static constexpr auto kResendAfter = 300ms;
  ControlChannel alice_, bob_;
  ControlChannel::Clock::time_point now_ = ControlChannel::Clock::now();
  uint64_t pushed_ = 0, delivered_ = 0, acked_ = 0;
};

TEST_F(ControlChannelTest, BringsItemsOnceAndInOrder) {
  Push(20'000);
  Exchange();
  EXPECT_EQ(delivered_, 20'000u);
  EXPECT_EQ(acked_, 20'000u);
  EXPECT_EQ(alice_.waiting(), 0u);
}

TEST_F(ControlChannelTest, ManyItemsShareAFrame) {
  Push(1000);
  int frames = 0;
  while (alice_.Due(now_, kResendAfter)) {
    Deliver(alice_, bob_);
    ++frames;
  }
  EXPECT_EQ(delivered_, 1000u);
  EXPECT_LT(frames, 10);
}

TEST_F(ControlChannelTest, LostDoubledAndOvertakenFramesHurtNothing) {
  Push(1);
  const ControlFrame lost = alice_.Take(now_, kResendAfter);
  Push(1);
  const ControlFrame early = alice_.Take(now_, kResendAfter);
  EXPECT_FALSE(alice_.Due(now_, kResendAfter));
  EXPECT_TRUE(bob_.Receive(early).items.empty());
  now_ += kResendAfter;
  ASSERT_TRUE(alice_.Due(now_, kResendAfter));
  Deliver(alice_, bob_);
  EXPECT_EQ(delivered_, 2u);
  EXPECT_TRUE(bob_.Receive(lost).items.empty());
  EXPECT_TRUE(bob_.Receive(early).items.empty());
  Deliver(bob_, alice_);
  EXPECT_EQ(acked_, 2u);
  EXPECT_FALSE(alice_.Due(now_ + 10s, kResendAfter));
}

TEST_F(ControlChannelTest, WhatIsLostIsSentAgainThoughMoreIsSentMeanwhile) {
  Push(1);
  EXPECT_EQ(Lose(), 1u);
  for (int soon = 0; soon < 10 && delivered_ == 0; ++soon) {
    now_ += kResendAfter / 3;
    Push(1);
    Exchange();
  }
  EXPECT_EQ(delivered_, pushed_);
  EXPECT_EQ(acked_, pushed_);
  EXPECT_LE(pushed_, 4u);
}

TEST_F(ControlChannelTest, ANewEpochForgetsTheOldOnBothSides) {
  Push(1);
  const ControlFrame old = alice_.Take(now_, kResendAfter);
  bob_.Push({ControlKind::kPing, {}, {}}, nullptr);
  alice_.Reset();
  EXPECT_EQ(alice_.waiting(), 0u);
  Push(1);
  const ControlFrame first = alice_.Take(now_, kResendAfter);
  EXPECT_EQ(first.epoch, 2u);
  bob_.Follow(first.epoch);
  EXPECT_EQ(bob_.waiting(), 0u);
  EXPECT_EQ(bob_.Receive(first).items.size(), 1u);
  Deliver(bob_, alice_);
  EXPECT_EQ(acked_, 1u);
  EXPECT_TRUE(bob_.Receive(old).items.empty());
  ASSERT_TRUE(bob_.Due(now_, kResendAfter));
  EXPECT_EQ(bob_.Take(now_, kResendAfter).epoch, 2u);
}

TEST_F(ControlChannelTest, WhoSpeaksOfAnEarlierEpochIsTold) {
  alice_.Reset();
  bob_.Push({ControlKind::kPing, {}, {}}, nullptr);
  EXPECT_FALSE(alice_.Due(now_, kResendAfter));
  EXPECT_TRUE(alice_.Receive(bob_.Take(now_, kResendAfter)).items.empty());
  ASSERT_TRUE(alice_.Due(now_, kResendAfter));
  EXPECT_EQ(alice_.Take(now_, kResendAfter).epoch, 2u);
}

TEST_F(ControlChannelTest, OneAnswerAfterABreakBringsAllThatWasLostAtOnce) {
  Push(3000);
  EXPECT_EQ(Lose(), 3000u);
  now_ += kResendAfter;
  Exchange();
  EXPECT_EQ(delivered_, 3000u);
  EXPECT_EQ(acked_, 3000u);
}

TEST_F(ControlChannelTest, APeerThatIsHeardAgainGetsWhatItLacksAtOnce) {
  Push(3000);
  Lose();
  alice_.Resume();
  Exchange();
  EXPECT_EQ(delivered_, 3000u);
  EXPECT_EQ(acked_, 3000u);
}

TEST_F(ControlChannelTest, WhatIsNotAnsweredIsSentAgainInSmallPortions) {
  Push(3000);
  EXPECT_EQ(Lose(), 3000u);
  for (int again = 0; again < 3; ++again) {
    now_ += kResendAfter;
    EXPECT_LE(Lose(), 300u);
  }
}

}  // namespace
}  // namespace baton::rpc::internal
