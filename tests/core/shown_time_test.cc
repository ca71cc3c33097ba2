// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/shown_time.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::milliseconds;

TEST(ShownTime, IsInSecondsFromOneOn) {
  EXPECT_EQ(ShownTime(milliseconds(0)), "0 ms");
  EXPECT_EQ(ShownTime(milliseconds(999)), "999 ms");
  EXPECT_EQ(ShownTime(milliseconds(1000)), "1 s");
  EXPECT_EQ(ShownTime(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(ShownTime(milliseconds(300'000)), "300 s");
}

}  // namespace
}  // namespace baton
