// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <atomic>

#include "core/cuda/batch_norm_forward.cuh"
#include "core/cuda/batch_norm_launch.cuh"

namespace baton::cuda {
namespace {

// Uses so much shared memory that only one block fits on a multiprocessor.
__global__ void __launch_bounds__(kNormThreads) ProbeKernel() {}
constexpr int kProbeBytes = 128 * 1024;

int CountClusteredBlocks(const Launch& launch) {
  launch.Check(cudaFuncSetAttribute(reinterpret_cast<const void*>(&ProbeKernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    kProbeBytes));
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kNormCluster;
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kNormCluster);
  config.blockDim = dim3(kNormThreads);
  config.dynamicSmemBytes = kProbeBytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  launch.Check(
      cudaOccupancyMaxActiveClusters(&clusters, &ProbeKernel, &config));
  return clusters > 0 ? clusters * kNormCluster : launch.multiprocessors();
}

template <typename T, int V, bool kPlanes>
__global__ void __launch_bounds__(kNormThreads, 1)
    MomentsKernel(const T* x, NormLayout layout,
                  NormPartials<Compute<T>> partials) {
  using A = Compute<T>;
  __shared__ NormTotals<A, V, kPlanes, StreamLanes(V)> totals;
  const NormWalk<V, kPlanes> walk(layout);
  A center[V], sums[2][V] = {};
  walk.TakeFirst(x, center);
  ForSteps<8>(
      0, walk.steps(), [&](int k) { return ReadPack<V>(x + walk.Offset(k)); },
      [&](const Packed<T, V>& pack, int) { AddMoments(pack, center, sums); });
  totals.Add(sums, layout.lane_bits);
  partials.Write(totals, walk.width());
}

constexpr int kFinishThreads = 256;

// One thread computes one channel.
template <typename T, int V, bool kPlanes>
__global__ void __launch_bounds__(kFinishThreads)
    FinishMomentsKernel(const T* x, NormLayout layout, int width, double count,
                        NormPartials<Compute<T>> partials,
                        Compute<T>* moments) {
  using A = Compute<T>;
  const int channel =
      static_cast<int>(blockIdx.x * kFinishThreads + threadIdx.x);
  if (channel >= layout.channels) return;
  A first, second;
  partials.Read(channel / width, width, channel % width, first, second);
  const int64_t at = kPlanes ? int64_t{channel} * layout.plane * V : channel;
  const double distance = static_cast<double>(first) / count;
  const double variance =
      static_cast<double>(second) / count - distance * distance;
  A* const own = moments + channel;
  own[0] = static_cast<A>(count);
  own[layout.channels] =
      static_cast<A>(static_cast<double>(As<A>(x[at])) + distance);
  // Written this way round, it passes NaN on.
  own[int64_t{2} * layout.channels] =
      variance < 0 ? A(0) : static_cast<A>(variance);
}

}  // namespace

int ClusteredBlocks(const Launch& launch) {
  static std::array<std::atomic<int>, 64> known = {};
  std::atomic<int>& count = known[static_cast<size_t>(launch.device())];
  if (count == 0) count = CountClusteredBlocks(launch);
  return count;
}

Tensor EmptyPartials(const NormGrid& grid, const Tensor& x) {
  return Tensor::Empty(
      {grid.groups, grid.partials(), 2, grid.width},
      {.dtype = x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32,
       .device = x.device()});
}

void LaunchMoments(const Launch& launch, const NormView& view,
                   const NormGrid& grid, const Tensor& x,
                   const Tensor& partials) {
  VisitNorm(view, x.dtype(), [&](auto type, auto pack, auto planes) {
    using T = typename decltype(type)::type;
    using A = Compute<T>;
    LaunchNorm(launch, grid,
               MomentsKernel<T, decltype(pack)::value, decltype(planes)::value>,
               DataOf<const T>(x), grid.layout,
               NormPartials<A>{DataOf<A>(partials), grid.partials()});
  });
}

void LaunchFinishMoments(const Launch& launch, const NormView& view,
                         const NormGrid& grid, const Tensor& x,
                         const Tensor& partials, const Tensor& moments) {
  const auto blocks = static_cast<unsigned>(
      (view.channels + kFinishThreads - 1) / kFinishThreads);
  const double count =
      static_cast<double>(x.numel()) / static_cast<double>(view.channels);
  VisitNorm(view, x.dtype(), [&](auto type, auto pack, auto planes) {
    using T = typename decltype(type)::type;
    using A = Compute<T>;
    FinishMomentsKernel<T, decltype(pack)::value, decltype(planes)::value>
        <<<blocks, kFinishThreads, 0, launch.stream()>>>(
            DataOf<const T>(x), grid.layout, grid.width, count,
            NormPartials<A>{DataOf<A>(partials), grid.partials()},
            DataOf<A>(moments));
    launch.Check();
  });
}

}  // namespace baton::cuda
