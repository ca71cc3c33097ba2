// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/batch_norm_backward.cuh"

namespace baton::cuda {
namespace {

// The backward of batch norm, by clusters that own their channels. For each
// step that is kept in shared memory, a thread has two packs there, g and x.
template <typename T, int V, bool kPlanes>
__global__ void __launch_bounds__(kNormThreads, 1)
    OwnerBackwardKernel(NormGradientArgs<T> args, NormLayout layout, int kept,
                        BackwardChannels<Compute<T>> channels) {
  using A = Compute<T>;
  constexpr int kWidth = kPlanes ? 1 : V * OwnerLanes(V);
  extern __shared__ uint4 kept_memory[];
  __shared__ NormTotals<A, V, kPlanes, OwnerLanes(V)> totals;
  __shared__ SharedGradientAffine<A, kWidth> affine;
  const NormWalk<V, kPlanes> walk(layout);
  const int thread = static_cast<int>(threadIdx.x);
  T* const own = reinterpret_cast<T*>(kept_memory) + thread * V;
  constexpr int kStride = kNormThreads * V;
  const int first_kept = max(walk.block_steps() - kept, 0);

  A mean[V], mask_scale[V], mask_shift[V], sums[2][V] = {};
  walk.TakeGlobal(args.mean, mean);
  walk.TakeGlobal(args.scale, mask_scale);
  walk.TakeGlobal(args.shift, mask_shift);
  ForSteps<4>(
      0, walk.steps(),
      [&](int k) { return ReadGradient<V, false>(args, walk.Offset(k)); },
      [&](const NormGradientPacks<T, V>& packs, int k) {
        A g[V], x[V];
        Unpack(packs.x, x);
        MaskGradient(args, packs, x, mask_scale, mask_shift, g);
        const Packed<T, V> rounded = Rounded<T>(g);
        if (args.g != nullptr) WritePack(args.g + walk.Offset(k), rounded);
        if (k >= first_kept) {
          T* const to = own + (k - first_kept) * 2 * kStride;
          WritePack(to, rounded);
          WritePack(to + kStride, packs.x);
        }
        AddGradients(g, x, mean, sums);
      });
  totals.Add(sums, layout.lane_bits);
  const int channel = walk.first_channel() + thread;
  if (thread < walk.width() && channel < layout.channels) {
    affine.Set(thread,
               channels.FromSums(channel, totals.OverCluster(thread),
                                 totals.OverCluster(walk.width() + thread),
                                 walk.slab() == 0));
  }
  SyncCluster();  // no block ends while another reads its sums

  A scale[V], slope[V], offset[V];
  walk.TakeShared(affine.scale, scale);
  walk.TakeShared(affine.slope, slope);
  walk.TakeShared(affine.offset, offset);
  for (int k = first_kept; k < walk.steps(); ++k) {
    const T* const from = own + (k - first_kept) * 2 * kStride;
    A g[V], x[V];
    Unpack(ReadPack<V>(from), g);
    Unpack(ReadPack<V>(from + kStride), x);
    WritePack(args.dx + walk.Offset(k),
              InputGradient<T>(g, x, scale, slope, offset));
  }
  // The remaining steps, beginning with the one that was read last.
  const int rest = min(first_kept, walk.steps());
  ForSteps<2>(
      0, rest,
      [&](int k) {
        return ReadGradient<V, true>(args, walk.Offset(rest - 1 - k));
      },
      [&](const NormGradientPacks<T, V>& packs, int k) {
        A g[V], x[V];
        Unpack(packs.x, x);
        MaskGradient(args, packs, x, mask_scale, mask_shift, g);
        WritePack(args.dx + walk.Offset(rest - 1 - k),
                  InputGradient<T>(g, x, scale, slope, offset));
      });
}

}  // namespace

void LaunchOwnerBackward(const Launch& launch, const NormView& view,
                         const NormGrid& grid, const NormBackward& args) {
  VisitNorm(view, args.x.dtype(), [&](auto type, auto pack, auto planes) {
    using T = typename decltype(type)::type;
    using A = Compute<T>;
    LaunchNorm(
        launch, grid,
        OwnerBackwardKernel<T, decltype(pack)::value, decltype(planes)::value>,
        GradientArgsOf<T>(args), grid.layout, grid.kept, ChannelsOf<A>(args));
  });
}

}  // namespace baton::cuda
