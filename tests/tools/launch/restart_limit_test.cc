// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/restart_limit.h"

#include "gtest/gtest.h"

namespace baton::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RestartLimit::Clock::time_point kStart{seconds(1000)};

RestartLimit LimitOf(int most) {
  return RestartLimit(
      {.most = most, .window = seconds(10), .soon = seconds(1)});
}

TEST(RestartLimit, RefusesOneMoreWithinTheWindow) {
  RestartLimit limit = LimitOf(2);
  EXPECT_TRUE(limit.Take(kStart));
  EXPECT_TRUE(limit.Take(kStart + seconds(9)));
  EXPECT_EQ(limit.taken(), 2u);
  EXPECT_FALSE(limit.Take(kStart + seconds(9)));
}

TEST(RestartLimit, ForgetsWhatIsOlderThanTheWindow) {
  RestartLimit limit = LimitOf(2);
  EXPECT_TRUE(limit.Take(kStart));
  EXPECT_TRUE(limit.Take(kStart + seconds(9)));
  EXPECT_TRUE(limit.Take(kStart + seconds(10)));
  EXPECT_EQ(limit.taken(), 2u);
  EXPECT_FALSE(limit.Take(kStart + seconds(18)));
  EXPECT_TRUE(limit.Take(kStart + seconds(19)));
}

TEST(RestartLimit, OfNoneAllowsNone) {
  RestartLimit limit = LimitOf(0);
  EXPECT_FALSE(limit.Take(kStart));
}

TEST(RestartLimit, PausesTwiceAsLongEachTimeThatOneFailsSoon) {
  RestartLimit limit({.most = 100,
                      .pause = milliseconds(100),
                      .longest_pause = milliseconds(500),
                      .soon = seconds(1)});
  RestartLimit::Clock::time_point now = kStart;
  for (const int pause : {0, 100, 200, 400, 500, 500}) {
    EXPECT_EQ(limit.Take(now), milliseconds(pause));
    now += milliseconds(pause + 999);
  }
  // One that has run for a while after the pause is started at once.
  now += milliseconds(500);
  EXPECT_EQ(limit.Take(now), milliseconds(0));
  EXPECT_EQ(limit.Take(now), milliseconds(100));
}

}  // namespace
}  // namespace baton::tools
