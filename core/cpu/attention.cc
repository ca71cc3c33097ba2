// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/attention.h"

#include <algorithm>
#include <limits>

#include "core/cpu/lanes.h"
#include "core/cpu/math.h"
#include "core/cpu/simd.h"
#include "core/dtype_visit.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

constexpr int64_t kWeightsGrain = 4096;  // elements worth a thread

// Only the first `seen` of the row's `count` elements have weights; the others
// become 0.
struct WeightsRow {
  template <typename C>
  BATON_SIMD_INLINE void operator()(C* row, C scale, int64_t seen,
                                    int64_t count) const {
    const C max = ReduceLanes<C>(
        seen, -std::numeric_limits<C>::infinity(),
        [row](int64_t i) { return row[i]; },
        [](C a, C b) { return a < b ? b : a; });
    for (int64_t i = 0; i < seen; ++i) row[i] = Exp((row[i] - max) * scale);
    const C factor = C(1) / ReduceLanes<C>(
                                seen, C(0), [row](int64_t i) { return row[i]; },
                                [](C a, C b) { return a + b; });
    for (int64_t i = 0; i < seen; ++i) row[i] *= factor;
    for (int64_t i = seen; i < count; ++i) row[i] = C(0);
  }
};

}  // namespace

void AttentionWeights(const Tensor& scores, const AttentionRows& rows) {
  if (scores.numel() == 0) return;
  const int64_t queries = scores.dim(2), keys = scores.dim(3);
  VisitReal(scores.dtype(), [&](auto type) {
    using C = typename decltype(type)::type;
    C* data = scores.data<C>();
    ParallelFor(
        scores.numel() / keys, std::max<int64_t>(1, kWeightsGrain / keys),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t query = rows.first_query + i % queries;
            RunSimd(WeightsRow{}, data + i * keys, static_cast<C>(rows.scale),
                    rows.causal ? std::min(keys, query + 1) : keys, keys);
          }
        });
  });
}

}  // namespace baton::cpu
