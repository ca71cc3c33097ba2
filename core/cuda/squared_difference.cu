// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/device_types.cuh"
#include "core/cuda/group_reduce.cuh"
#include "core/cuda/reduce.h"

namespace baton::cuda {
namespace {

constexpr int kThreads = kGroupThreads;

// Calls body(index of a pack) for a thread's packs of dense x and y, and
// rest(index of an element) for its elements after the last pack.
template <int kPack, typename Body, typename Rest>
__device__ __forceinline__ void ForPacks(int64_t count, Body body, Rest rest) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
#pragma unroll 2
  for (int64_t i = first; i < count / kPack; i += step) body(i);
  if constexpr (kPack > 1) {
    for (int64_t i = count / kPack * kPack + first; i < count; i += step) {
      rest(i);
    }
  }
}

template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    SumKernel(const T* x, const T* y, int64_t count, Sum<T>* parts) {
  using C = Sum<T>;
  C sum = 0;
  const auto add = [&sum](T a, T b) {
    const C difference = As<C>(a) - As<C>(b);
    sum += difference * difference;
  };
  ForPacks<kPack>(
      count,
      [&](int64_t i) {
        const auto a = reinterpret_cast<const Pack<T, kPack>*>(x)[i];
        const auto b = reinterpret_cast<const Pack<T, kPack>*>(y)[i];
#pragma unroll
        for (int j = 0; j < kPack; ++j) add(a.at[j], b.at[j]);
      },
      [&](int64_t i) { add(x[i], y[i]); });
  sum = CombineGroup(sum, kThreads, [](C a, C b) { return a + b; });
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    GradientKernel(T* dx, const T* x, const T* y, const T* dy, int64_t count) {
  using C = Compute<T>;
  const C scale = C(2) * As<C>(*dy) / static_cast<C>(count);
  const auto gradient = [scale](T a, T b) {
    return As<T>(scale * (As<C>(a) - As<C>(b)));
  };
  ForPacks<kPack>(
      count,
      [&](int64_t i) {
        const auto a = reinterpret_cast<const Pack<T, kPack>*>(x)[i];
        const auto b = reinterpret_cast<const Pack<T, kPack>*>(y)[i];
        Pack<T, kPack> result;
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          result.at[j] = gradient(a.at[j], b.at[j]);
        }
        reinterpret_cast<Pack<T, kPack>*>(dx)[i] = result;
      },
      [&](int64_t i) { dx[i] = gradient(x[i], y[i]); });
}

}  // namespace

void MeanSquaredDifference(const Tensor& mean, const Tensor& x,
                           const Tensor& y) {
  constexpr char kOp[] = "mse_loss";
  const int64_t count = x.numel();
  const Launch launch(kOp, {&mean}, {&x, &y});
  VisitDeviceFloating(kOp, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int kPack = kPackSize<T>;
    const auto* a = static_cast<const T*>(x.raw_data());
    const auto* b = static_cast<const T*>(y.raw_data());
    const int blocks = std::min(launch.Blocks(count, kThreads, 2 * kPack),
                                8 * launch.multiprocessors());
    const Tensor parts = Tensor::Empty(
        {blocks}, {.dtype = kDTypeOf<Sum<T>>, .device = x.device()});
    const Launch first(kOp, {&parts}, {});
    auto* sums = static_cast<Sum<T>*>(parts.raw_data());
    if (IsAligned(a) && IsAligned(b)) {
      SumKernel<kPack>
          <<<blocks, kThreads, 0, first.stream()>>>(a, b, count, sums);
    } else {
      SumKernel<1><<<blocks, kThreads, 0, first.stream()>>>(a, b, count, sums);
    }
    first.Check();
    SumParts(mean, parts, 1 / static_cast<double>(count));
  });
}

void MeanSquaredDifferenceBackward(const Tensor& dx, const Tensor& x,
                                   const Tensor& y, const Tensor& dy) {
  constexpr char kOp[] = "mse_loss_backward";
  const int64_t count = x.numel();
  if (count == 0) return;
  const Launch launch(kOp, {&dx}, {&x, &y, &dy});
  VisitDeviceFloating(kOp, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int kPack = kPackSize<T>;
    auto* to = static_cast<T*>(dx.raw_data());
    const auto* a = static_cast<const T*>(x.raw_data());
    const auto* b = static_cast<const T*>(y.raw_data());
    const auto* scale = static_cast<const T*>(dy.raw_data());
    const int blocks = launch.Blocks(count, kThreads, 2 * kPack);
    if (IsAligned(to) && IsAligned(a) && IsAligned(b)) {
      GradientKernel<kPack>
          <<<blocks, kThreads, 0, launch.stream()>>>(to, a, b, scale, count);
    } else {
      GradientKernel<1>
          <<<blocks, kThreads, 0, launch.stream()>>>(to, a, b, scale, count);
    }
    launch.Check();
  });
}

}  // namespace baton::cuda
