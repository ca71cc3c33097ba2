// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/histogram.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace baton::rpc {

size_t BucketOf(uint64_t us) {
  if (us < 4) return us;
  const int octave = std::bit_width(us) - 1;  // at least 2
  const size_t bucket = 4 * (octave - 1) + ((us >> (octave - 2)) & 3);
  return std::min(bucket, kHistogramBuckets - 1);
}

uint64_t BucketBegin(size_t bucket) {
  if (bucket < 4) return bucket;
  return (4 + bucket % 4) << (bucket / 4 - 1);
}

double QuantileUs(const std::vector<uint64_t>& counts, double q) {
  const uint64_t total =
      std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  double left = q * static_cast<double>(total);
  for (size_t bucket = 0; bucket < counts.size(); ++bucket) {
    const double here = static_cast<double>(counts[bucket]);
    if (here > 0 && left <= here) {
      const double begin = static_cast<double>(BucketBegin(bucket));
      const double end = static_cast<double>(BucketBegin(bucket + 1));
      return begin + (end - begin) * left / here;
    }
    left -= here;
  }
  return 0;
}

void CountIn(std::vector<uint64_t>& counts, uint64_t us) {
  const size_t bucket = BucketOf(us);
  if (counts.size() <= bucket) counts.resize(bucket + 1);
  ++counts[bucket];
}

}  // namespace baton::rpc
