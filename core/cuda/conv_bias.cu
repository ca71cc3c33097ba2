// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <limits>

#include "core/cuda/conv_bias.h"
#include "core/cuda/device_types.cuh"
#include "core/cuda/launch.h"

namespace baton::cuda {
namespace {

constexpr int kThreads = 256;

// `inner` adjacent elements share a channel. A pack never contains elements of
// two channels or, if inner is 1, of two pixels.
template <typename T, int N, typename Index>
__global__ void AddBias(T* y, const T* bias, Index packs, Index inner,
                        Index channels) {
  const Index step = static_cast<Index>(gridDim.x) * kThreads;
  for (Index i = blockIdx.x * static_cast<Index>(kThreads) + threadIdx.x;
       i < packs; i += step) {
    Pack<T, N> values = reinterpret_cast<Pack<T, N>*>(y)[i];
    const Index channel = i * N / inner % channels;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const T added = bias[inner == 1 ? channel + k : channel];
      values.at[k] =
          As<T>(As<Compute<T>>(values.at[k]) + As<Compute<T>>(added));
    }
    reinterpret_cast<Pack<T, N>*>(y)[i] = values;
  }
}

template <typename T, int N>
void Run(const Launch& launch, const Tensor& y, const Tensor& bias,
         int64_t inner) {
  const int64_t packs = y.numel() / N;
  const int blocks = launch.Blocks(packs, kThreads);
  auto* data = static_cast<T*>(y.raw_data());
  const auto* added = static_cast<const T*>(bias.raw_data());
  // Adding the stride of the grid must not overflow a 32-bit index.
  if (y.numel() < std::numeric_limits<int32_t>::max() / 2) {
    AddBias<T, N, uint32_t><<<blocks, kThreads, 0, launch.stream()>>>(
        data, added, static_cast<uint32_t>(packs), static_cast<uint32_t>(inner),
        static_cast<uint32_t>(bias.numel()));
  } else {
    AddBias<T, N, int64_t><<<blocks, kThreads, 0, launch.stream()>>>(
        data, added, packs, inner, bias.numel());
  }
}

}  // namespace

void AddChannelBias(const Tensor& y, const Tensor& bias) {
  const Launch launch("conv2d", {&y}, {&bias});
  const int64_t inner = y.IsContiguous() ? y.dim(2) * y.dim(3) : 1;
  const int64_t run = inner == 1 ? bias.numel() : inner;
  VisitDeviceFloating("conv2d", y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (run % kPackSize<T> == 0 && IsAligned(y.raw_data())) {
      Run<T, kPackSize<T>>(launch, y, bias, inner);
    } else {
      Run<T, 1>(launch, y, bias, inner);
    }
  });
  launch.Check();
}

}  // namespace baton::cuda
