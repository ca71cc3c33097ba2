// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/failure_detector.h"

#include <gtest/gtest.h>

namespace baton::rpc {
namespace {

using namespace std::chrono_literals;

class PulseTest : public ::testing::Test {
 protected:
  // The next beat, `late` after it was due.
  FailureDetector::Due Beat(std::chrono::milliseconds late = 0ms) {
    now_ += failure_detector_.interval() + late;
    return failure_detector_.Beat(now_);
  }

  FailureDetector::Clock::time_point now_ = FailureDetector::Clock::now();
  FailureDetector failure_detector_{2000ms, 2000ms, now_};
};

TEST_F(PulseTest, AnEndThatIsNotHeardIsSilentBeforeItsLeaseIsOver) {
  EXPECT_EQ(failure_detector_.interval(), 380ms);
  for (int beat = 0; beat < 3; ++beat) EXPECT_FALSE(Beat().silent);
  EXPECT_TRUE(Beat().silent);
}

TEST_F(PulseTest, OneSignOfLifeInFourBeatsIsEnough) {
  for (int round = 0; round < 10; ++round) {
    for (int beat = 0; beat < 3; ++beat) EXPECT_FALSE(Beat().silent);
    failure_detector_.Heard();
    EXPECT_FALSE(Beat().silent);
  }
}

TEST_F(PulseTest, WhoWasStoppedItselfCallsNobodySilent) {
  for (int beat = 0; beat < 3; ++beat) Beat();
  EXPECT_FALSE(Beat(60s).silent);
  for (int beat = 0; beat < 3; ++beat) EXPECT_FALSE(Beat().silent);
  EXPECT_TRUE(Beat().silent);
}

// As timers are.
TEST_F(PulseTest, BeatsThatAreHardlyLateAreOnTime) {
  for (int beat = 0; beat < 3; ++beat) EXPECT_FALSE(Beat(10ms).silent) << beat;
  EXPECT_TRUE(Beat(10ms).silent);
}

TEST_F(PulseTest, WhoIsLateItselfForgivesTwiceThat) {
  for (int beat = 0; beat < 5; ++beat) EXPECT_FALSE(Beat(60ms).silent) << beat;
  EXPECT_TRUE(Beat(60ms).silent);  // 2.3 s less 0.72 s
}

TEST_F(PulseTest, ForgivesHalfALeaseAtMost) {
  for (int beat = 0; beat < 6; ++beat) EXPECT_FALSE(Beat(370ms).silent) << beat;
  EXPECT_TRUE(Beat(370ms).silent);  // 2.7 s less 1 s
  failure_detector_.Heard();
  for (int beat = 0; beat < 4; ++beat) EXPECT_FALSE(Beat().silent) << beat;
  EXPECT_TRUE(Beat().silent);
}

class LatePulseTest : public PulseTest {
 protected:
  // Four beats that were late by 20 ms each, so that 160 ms are forgiven, of
  // which 95 ms are as good as nothing.
  LatePulseTest() {
    for (int beat = 0; beat < 4; ++beat) {
      now_ = failure_detector_.Next(now_, 0) + 20ms;
      EXPECT_FALSE(failure_detector_.Beat(now_).silent) << beat;
    }
  }
  // When the next call of Beat is due.
  std::chrono::nanoseconds UntilNext() {
    const auto before = now_;
    now_ = failure_detector_.Next(now_, 0);
    return now_ - before;
  }
};

TEST_F(LatePulseTest, ForgivesForNoLongerThanItSaid) {
  EXPECT_EQ(UntilNext(), 65ms);
  const FailureDetector::Due due = failure_detector_.Beat(now_ + 10ms);
  EXPECT_TRUE(due.silent);
  EXPECT_FALSE(due.speak);
}

TEST_F(LatePulseTest, OneWhoIsHeardInThatTimeIsAlive) {
  EXPECT_EQ(UntilNext(), 65ms);
  failure_detector_.Heard();
  EXPECT_FALSE(failure_detector_.Beat(now_).silent);
  EXPECT_EQ(UntilNext(), 295ms);  // the beat that was due anyway
  EXPECT_FALSE(failure_detector_.Beat(now_).silent);
  for (int beat = 0; beat < 3; ++beat) {
    EXPECT_EQ(UntilNext(), 380ms);
    EXPECT_FALSE(failure_detector_.Beat(now_).silent) << beat;
  }
  EXPECT_EQ(UntilNext(), 380ms);
  EXPECT_TRUE(failure_detector_.Beat(now_).silent);
}

TEST_F(LatePulseTest, WhoWasStoppedInThatTimeCallsNobodySilent) {
  EXPECT_EQ(UntilNext(), 65ms);
  EXPECT_FALSE(failure_detector_.Beat(now_ + 60s).silent);
}

TEST_F(PulseTest, CountsLatenessFromTheTimeThatWasNamed) {
  // Equally late each time, so that as much time as ever is between two beats.
  auto late_beat = [this] {
    now_ = failure_detector_.Next(now_, 0) + 60ms;
    return failure_detector_.Beat(now_);
  };
  for (int beat = 0; beat < 5; ++beat) EXPECT_FALSE(late_beat().silent) << beat;
  EXPECT_TRUE(late_beat().silent);
}

TEST_F(PulseTest, SpeaksWhenNothingElseWasSaid) {
  EXPECT_TRUE(Beat().speak);
  failure_detector_.Spoke();
  EXPECT_FALSE(Beat().speak);
  EXPECT_TRUE(Beat().speak);
}

TEST_F(PulseTest, BeatsOftenEnoughForTheShorterLease) {
  failure_detector_ = FailureDetector(60s, 500ms, now_);
  EXPECT_EQ(failure_detector_.interval(), 95ms);
  for (int beat = 1; beat < 480; ++beat) ASSERT_FALSE(Beat().silent) << beat;
  EXPECT_TRUE(Beat().silent);
  failure_detector_ = FailureDetector(500ms, 60s, now_);
  EXPECT_EQ(failure_detector_.interval(), 95ms);
}

TEST_F(PulseTest, WithoutALeaseNobodyIsSilent) {
  failure_detector_ = FailureDetector(0ms, 1000ms, now_);
  for (int beat = 0; beat < 100; ++beat) {
    const FailureDetector::Due due = Beat();
    EXPECT_TRUE(due.speak);
    EXPECT_FALSE(due.silent);
  }
  EXPECT_EQ(FailureDetector(0ms, 0ms, now_).interval(), 0ms);
  EXPECT_EQ(FailureDetector(0ms, -5ms, now_).interval(), 0ms);
}

TEST_F(PulseTest, AHostileLeaseKeepsNobodyBusy) {
  EXPECT_GE(FailureDetector(2000ms, 1ms, now_).interval(), 10ms);
}

TEST(FailureDetector, ConnectionsOfOneProcessBeatTogether) {
  const FailureDetector::Clock::time_point start{std::chrono::hours(5)};
  FailureDetector failure_detector(2000ms, 2000ms, start);
  for (const uint64_t phase : {uint64_t{0}, uint64_t{7'000'000}, UINT64_MAX}) {
    const auto first = failure_detector.Next(start, phase);
    EXPECT_GT(first, start);
    EXPECT_LE(first - start, failure_detector.interval());
    EXPECT_EQ(failure_detector.Next(first - 1ns, phase), first);
    EXPECT_EQ(failure_detector.Next(first, phase),
              first + failure_detector.interval());
    EXPECT_EQ(failure_detector.Next(first + 13ms, phase),
              first + failure_detector.interval());
  }
  EXPECT_NE(failure_detector.Next(start, 0),
            failure_detector.Next(start, 7'000'000));
}

}  // namespace
}  // namespace baton::rpc
