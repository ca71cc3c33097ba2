// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>

#include "core/cuda/attention.h"
#include "core/cuda/offsets.cuh"
#include "core/cuda/rows.cuh"

namespace baton::cuda {
namespace {

constexpr char kAttentionOp[] = "attention";

__device__ __forceinline__ float Power(float x) { return expf(x); }
__device__ __forceinline__ double Power(double x) { return exp(x); }

// A group of threads computes one row of `keys` scores; the row belongs to one
// of `queries` queries.
template <typename C>
__global__ void __launch_bounds__(kGroupThreads)
    WeightsKernel(C* scores, AttentionRows options, int64_t rows,
                  int64_t queries, int64_t keys, int group) {
  const C scale = static_cast<C>(options.scale);
  ForRows(rows, group, [&](int64_t row, bool live, int member) {
    C* data = scores + row * keys;
    const int64_t query =
        options.first_query + row - Quotient(row, queries) * queries;
    int64_t seen = live ? keys : 0;
    if (options.causal && query + 1 < seen) seen = query + 1;
    C max = static_cast<C>(-INFINITY);
    for (int64_t i = member; i < seen; i += group) {
      max = max < data[i] ? data[i] : max;
    }
    max = CombineGroup(max, group, [](C a, C b) { return a < b ? b : a; });
    C sum = 0;
    for (int64_t i = member; i < seen; i += group) {
      data[i] = Power((data[i] - max) * scale);
      sum += data[i];
    }
    sum = CombineGroup(sum, group, [](C a, C b) { return a + b; });
    for (int64_t i = member; live && i < keys; i += group) {
      data[i] = i < seen ? data[i] / sum : C(0);
    }
  });
}

}  // namespace

void AttentionWeights(const Tensor& scores, const AttentionRows& rows) {
  if (scores.numel() == 0) return;
  const Launch launch(kAttentionOp, {&scores}, {});
  const int64_t keys = scores.dim(3), count = scores.numel() / keys;
  const int group = GroupSize(launch, count, keys);
  VisitReal(scores.dtype(), [&](auto type) {
    using C = typename decltype(type)::type;
    WeightsKernel<<<GroupBlocks(launch, count, group), kGroupThreads, 0,
                    launch.stream()>>>(static_cast<C*>(scores.raw_data()), rows,
                                       count, scores.dim(2), keys, group);
    launch.Check();
  });
}

}  // namespace baton::cuda
