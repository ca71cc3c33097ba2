// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace baton::rpc {
namespace {

TEST(Histogram, BucketsFollowEachOtherWithoutGaps) {
  for (size_t bucket = 0; bucket + 1 < kHistogramBuckets; ++bucket) {
    EXPECT_EQ(BucketOf(BucketBegin(bucket)), bucket);
    EXPECT_EQ(BucketOf(BucketBegin(bucket + 1) - 1), bucket);
  }
  EXPECT_EQ(BucketOf(UINT64_MAX), kHistogramBuckets - 1);
}

TEST(Histogram, ABucketIsAtMostAQuarterOfItsValuesWide) {
  for (size_t bucket = 4; bucket < kHistogramBuckets; ++bucket) {
    EXPECT_LE(4 * (BucketBegin(bucket + 1) - BucketBegin(bucket)),
              BucketBegin(bucket));
  }
}

TEST(Histogram, QuantilesAreRightToAnEighth) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> times(6, 2);
  std::vector<uint64_t> counts;
  std::vector<uint64_t> all;
  for (int i = 0; i < 100'000; ++i) {
    all.push_back(static_cast<uint64_t>(times(random)));
    CountIn(counts, all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double q : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = static_cast<double>(all[size_t(q * all.size())]);
    EXPECT_NEAR(QuantileUs(counts, q), exact, exact / 8 + 1) << q;
  }
}

TEST(Histogram, NothingCountedHasNoQuantile) {
  EXPECT_EQ(QuantileUs({}, 0.5), 0);
  std::vector<uint64_t> one;
  CountIn(one, 0);
  EXPECT_EQ(one, std::vector<uint64_t>{1});
}

}  // namespace
}  // namespace baton::rpc
