// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/batch_norm_forward.cuh"
#include "core/cuda/batch_norm_launch.cuh"

namespace baton::cuda {
namespace {

template <typename T, int V>
struct Loaded {
  Packed<T, V> x, residual;
};

// The forward of batch norm, by clusters that own their channels. Only the
// thread that keeps a pack in shared memory reads it again, so no barrier is
// needed for that.
template <typename T, int V, bool kPlanes>
__global__ void __launch_bounds__(kNormThreads, 1)
    OwnerForwardKernel(const T* x, const T* residual, T* y, bool relu,
                       NormLayout layout, int kept,
                       ForwardChannels<Compute<T>> channels) {
  using A = Compute<T>;
  constexpr int kWidth = kPlanes ? 1 : V * OwnerLanes(V);
  extern __shared__ uint4 kept_memory[];
  __shared__ NormTotals<A, V, kPlanes, OwnerLanes(V)> totals;
  __shared__ A scales[kWidth], shifts[kWidth];
  const NormWalk<V, kPlanes> walk(layout);
  const int thread = static_cast<int>(threadIdx.x);
  T* const own = reinterpret_cast<T*>(kept_memory) + thread * V;
  const int first_kept = max(walk.block_steps() - kept, 0);

  A center[V], sums[2][V] = {};
  walk.TakeFirst(x, center);
  ForSteps<8>(
      0, walk.steps(), [&](int k) { return ReadPack<V>(x + walk.Offset(k)); },
      [&](const Packed<T, V>& pack, int k) {
        if (k >= first_kept)
          WritePack(own + (k - first_kept) * kNormThreads * V, pack);
        AddMoments(pack, center, sums);
      });
  totals.Add(sums, layout.lane_bits);
  const int channel = walk.first_channel() + thread;
  if (thread < walk.width() && channel < layout.channels) {
    const NormAffine<A> affine = channels.FromMoments(
        channel, As<A>(x[walk.OffsetOfChannel(channel)]),
        totals.OverCluster(thread), totals.OverCluster(walk.width() + thread),
        walk.slab() == 0);
    scales[thread] = affine.scale;
    shifts[thread] = affine.shift;
  }
  SyncCluster();  // no block ends while another reads its sums

  A scale[V], shift[V];
  walk.TakeShared(scales, scale);
  walk.TakeShared(shifts, shift);
  const auto write = [&](const Loaded<T, V>& loaded, int64_t at) {
    WritePack(y + at, Normalized(loaded.x, loaded.residual, residual != nullptr,
                                 relu, scale, shift));
  };
  ForSteps<4>(
      first_kept, walk.steps(),
      [&](int k) {
        Loaded<T, V> loaded;
        loaded.x = ReadPack<V>(own + (k - first_kept) * kNormThreads * V);
        if (residual != nullptr)
          loaded.residual = ReadPackOnce<V>(residual + walk.Offset(k));
        return loaded;
      },
      [&](const Loaded<T, V>& loaded, int k) {
        write(loaded, walk.Offset(k));
      });
  // The remaining steps, beginning with the one that was read last.
  const int rest = min(first_kept, walk.steps());
  ForSteps<4>(
      0, rest,
      [&](int k) {
        Loaded<T, V> loaded;
        const int64_t at = walk.Offset(rest - 1 - k);
        loaded.x = ReadPackOnce<V>(x + at);
        if (residual != nullptr)
          loaded.residual = ReadPackOnce<V>(residual + at);
        return loaded;
      },
      [&](const Loaded<T, V>& loaded, int k) {
        write(loaded, walk.Offset(rest - 1 - k));
      });
}

}  // namespace

void LaunchOwnerForward(const Launch& launch, const NormView& view,
                        const NormGrid& grid, const NormForward& args) {
  VisitNorm(view, args.x.dtype(), [&](auto type, auto pack, auto planes) {
    using T = typename decltype(type)::type;
    using A = Compute<T>;
    LaunchNorm(
        launch, grid,
        OwnerForwardKernel<T, decltype(pack)::value, decltype(planes)::value>,
        DataOf<const T>(args.x), DataOf<const T>(args.residual),
        DataOf<T>(args.y), args.relu, grid.layout, grid.kept,
        ChannelsOf<A>(args));
  });
}

}  // namespace baton::cuda
