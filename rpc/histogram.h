// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::rpc {

// Durations in microseconds, in buckets that grow by a quarter of a power of
// two: what is read back is right to an eighth. Four buckets hold 0 to 3 us,
// the last one all from 2^36 us (19 hours) on.
inline constexpr size_t kHistogramBuckets = 4 * 36;

size_t BucketOf(uint64_t us);
// The least value of a bucket; of kHistogramBuckets, the end of the last one.
uint64_t BucketBegin(size_t bucket);
// The value below which the share `q` of what was counted lies, interpolated
// within its bucket; 0 for nothing counted. Trailing buckets may be missing.
double QuantileUs(const std::vector<uint64_t>& counts, double q);

// Counts from any thread, without locks. Thread-safe.
class Histogram {
 public:
  void Add(uint64_t us) {
    buckets_[BucketOf(us)].fetch_add(1, std::memory_order_relaxed);
  }
  // All that the other one has counted.
  void Add(const Histogram& other);
  // Without the empty buckets at the end.
  std::vector<uint64_t> Counts() const;

 private:
  std::array<std::atomic<uint64_t>, kHistogramBuckets> buckets_{};
};

}  // namespace baton::rpc
