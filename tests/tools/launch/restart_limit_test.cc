// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/restart_limit.h"

#include "gtest/gtest.h"

namespace baton::tools {
namespace {

using std::chrono::seconds;

const RestartLimit::Clock::time_point kStart{seconds(1000)};

TEST(RestartLimit, RefusesOneMoreWithinTheWindow) {
  RestartLimit limit(2, seconds(10));
  EXPECT_TRUE(limit.Take(kStart));
  EXPECT_TRUE(limit.Take(kStart + seconds(9)));
  EXPECT_EQ(limit.taken(), 2u);
  EXPECT_FALSE(limit.Take(kStart + seconds(9)));
}

TEST(RestartLimit, ForgetsWhatIsOlderThanTheWindow) {
  RestartLimit limit(2, seconds(10));
  EXPECT_TRUE(limit.Take(kStart));
  EXPECT_TRUE(limit.Take(kStart + seconds(9)));
  EXPECT_TRUE(limit.Take(kStart + seconds(10)));
  EXPECT_EQ(limit.taken(), 2u);
  EXPECT_FALSE(limit.Take(kStart + seconds(18)));
  EXPECT_TRUE(limit.Take(kStart + seconds(19)));
}

TEST(RestartLimit, OfNoneAllowsNone) {
  RestartLimit limit(0, seconds(10));
  EXPECT_FALSE(limit.Take(kStart));
}

}  // namespace
}  // namespace baton::tools
