// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>

#include "core/cuda/batch_norm.h"
#include "core/cuda/launch.h"

namespace baton::cuda {
namespace {

constexpr int kThreads = 256;

// One thread computes one channel, in double. The batches' sums of squares are
// around their own means; the joined ones are around the mean of all values.
template <typename A>
__global__ void __launch_bounds__(kThreads)
    JoinKernel(const A* batches, int64_t members, int64_t channels, A* joined) {
  const int64_t c = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (c >= channels) return;
  const auto of = [&](int64_t member, int row) {
    return static_cast<double>(batches[(3 * member + row) * channels + c]);
  };
  double count = 0, mean = 0, squares = 0;
  for (int64_t i = 0; i < members; ++i) {
    count += of(i, 0);
    mean += of(i, 0) * of(i, 1);
  }
  mean /= count;
  for (int64_t i = 0; i < members; ++i) {
    const double off = of(i, 1) - mean;
    squares += of(i, 0) * (of(i, 2) + off * off);
  }
  joined[c] = static_cast<A>(mean);
  joined[channels + c] = static_cast<A>(squares / (count - 1));
  joined[2 * channels + c] = static_cast<A>(squares / count);
  joined[3 * channels + c] = static_cast<A>(count);
}

template <typename A>
void LaunchJoin(const Launch& launch, const Tensor& batches,
                const Tensor& joined) {
  const int64_t channels = batches.dim(2);
  const auto blocks =
      static_cast<unsigned>((channels + kThreads - 1) / kThreads);
  JoinKernel<A><<<blocks, kThreads, 0, launch.stream()>>>(
      static_cast<const A*>(batches.raw_data()), batches.dim(0), channels,
      static_cast<A*>(joined.raw_data()));
  launch.Check();
}

}  // namespace

Tensor JoinMoments(const Tensor& batches) {
  const Tensor joined =
      Tensor::Empty({4, batches.dim(2)},
                    {.dtype = batches.dtype(), .device = batches.device()});
  if (joined.numel() == 0) return joined;
  const Launch launch("join_moments", {&joined}, {&batches});
  if (batches.dtype() == DType::kF64) {
    LaunchJoin<double>(launch, batches, joined);
  } else {
    LaunchJoin<float>(launch, batches, joined);
  }
  return joined;
}

}  // namespace baton::cuda
