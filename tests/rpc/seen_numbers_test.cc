// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <limits>

#include "rpc/peers.h"

namespace baton::rpc::internal {
namespace {

TEST(SeenNumbers, EachIsNewOnceInAnyOrder) {
  SeenNumbers seen;
  for (uint64_t n : {1, 3, 2, 7, 5}) EXPECT_TRUE(seen.FirstTime(n)) << n;
  for (uint64_t n : {1, 2, 3, 5, 7, 0}) EXPECT_FALSE(seen.FirstTime(n)) << n;
  for (uint64_t n = 8; n < 200'000; n += 2) EXPECT_TRUE(seen.FirstTime(n));
  EXPECT_FALSE(seen.FirstTime(9));
}

TEST(SeenNumbers, OneThatManyOvertookIsStillNew) {
  SeenNumbers seen;
  for (uint64_t n = 4; n < 200'000; ++n) ASSERT_TRUE(seen.FirstTime(n));
  for (uint64_t n : {2, 1, 3}) EXPECT_TRUE(seen.FirstTime(n)) << n;
  for (uint64_t n : {1, 2, 3, 4, 199'999}) EXPECT_FALSE(seen.FirstTime(n)) << n;
}

TEST(SeenNumbers, AGapIsFilledFromAnySide) {
  SeenNumbers seen;
  EXPECT_TRUE(seen.FirstTime(10));
  for (uint64_t n : {5, 1, 9, 4, 6, 2, 8, 3, 7}) {
    EXPECT_TRUE(seen.FirstTime(n)) << n;
    EXPECT_FALSE(seen.FirstTime(n)) << n;
  }
  for (uint64_t n = 1; n <= 10; ++n) EXPECT_FALSE(seen.FirstTime(n)) << n;
  EXPECT_TRUE(seen.FirstTime(11));
}

TEST(SeenNumbers, ExtremeNumbersDoNoHarm) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  SeenNumbers seen;
  EXPECT_FALSE(seen.FirstTime(kMost));
  EXPECT_TRUE(seen.FirstTime(kMost - 1));
  EXPECT_FALSE(seen.FirstTime(kMost - 1));
  EXPECT_FALSE(seen.FirstTime(kMost));
  EXPECT_FALSE(seen.FirstTime(0));
  EXPECT_TRUE(seen.FirstTime(1));
}

}  // namespace
}  // namespace baton::rpc::internal
