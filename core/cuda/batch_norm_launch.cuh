// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <type_traits>

#include "core/cuda/batch_norm_channels.cuh"
#include "core/cuda/batch_norm_kernels.h"
#include "core/cuda/batch_norm_walk.cuh"

// Helpers with which batch norm's sources launch their kernels.
namespace baton::cuda {

template <typename T>
T* DataOf(const Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.raw_data()) : nullptr;
}

template <typename A>
ForwardChannels<A> ChannelsOf(const NormForward& args) {
  return {.gamma = DataOf<A>(args.gamma),
          .beta = DataOf<A>(args.beta),
          .running_mean = DataOf<A>(args.running_mean),
          .running_variance = DataOf<A>(args.running_variance),
          .batches = DataOf<int64_t>(args.batches),
          .mean = DataOf<A>(args.mean),
          .inverse_stddev = DataOf<A>(args.inverse_stddev),
          .scale = DataOf<A>(args.scale),
          .shift = DataOf<A>(args.shift),
          .inverse_count = args.inverse_count,
          .unbias = args.unbias,
          .eps = args.eps,
          .momentum = args.momentum};
}

template <typename A>
BackwardChannels<A> ChannelsOf(const NormBackward& args) {
  return {.gamma = DataOf<A>(args.gamma),
          .mean = DataOf<A>(args.mean),
          .inverse_stddev = DataOf<A>(args.inverse_stddev),
          .variance = DataOf<A>(args.variance),
          .scale = DataOf<A>(args.scale),
          .shift = DataOf<A>(args.shift),
          .dgamma = DataOf<A>(args.dgamma),
          .dbeta = DataOf<A>(args.dbeta),
          .inverse_count = args.inverse_count,
          .eps = args.eps,
          .through_statistics = args.through_statistics};
}

// Calls fn(std::type_identity<T>, V, kPlanes); V and kPlanes are integral
// constants.
template <typename Fn>
void VisitNorm(const NormView& view, DType dtype, Fn&& fn) {
  VisitDeviceFloating("batch_norm", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto with_pack = [&](auto pack) {
      if (view.planes) {
        fn(type, pack, std::true_type());
      } else {
        fn(type, pack, std::false_type());
      }
    };
    if (view.pack == 1) {
      with_pack(std::integral_constant<int, 1>());
    } else {
      with_pack(std::integral_constant<int, kPackSize<T>>());
    }
  });
}

template <typename... Params>
void LaunchNorm(const Launch& launch, const NormGrid& grid,
                void (*kernel)(Params...),
                std::type_identity_t<Params>... args) {
  if (grid.kept_bytes > 0) {
    launch.Check(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(grid.kept_bytes)));
  }
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(grid.cluster);
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks()));
  config.blockDim = dim3(kNormThreads);
  config.dynamicSmemBytes = grid.kept_bytes;
  config.stream = launch.stream();
  config.attrs = &cluster;
  config.numAttrs = grid.cluster > 1 ? 1 : 0;
  launch.Check(cudaLaunchKernelEx(&config, kernel, args...));
}

}  // namespace baton::cuda
