// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::rpc {

// A histogram of durations in microseconds. Each power of two is divided into
// four buckets, so values are accurate to an eighth. The first four buckets
// hold 0 to 3 us; the last one holds everything from 7 * 2^34 us (33 hours) on.
inline constexpr size_t kHistogramBuckets = 4 * 36;

size_t BucketOf(uint64_t us);
// The least value of a bucket; for kHistogramBuckets, the end of the last one.
uint64_t BucketBegin(size_t bucket);
// The `q` quantile of the counted values, interpolated within its bucket; 0 if
// nothing was counted. Trailing buckets may be missing.
double QuantileUs(const std::vector<uint64_t>& counts, double q);

// Counts one value. `counts` grows up to its bucket.
void CountIn(std::vector<uint64_t>& counts, uint64_t us);

}  // namespace baton::rpc
