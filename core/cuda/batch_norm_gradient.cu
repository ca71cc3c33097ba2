// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/batch_norm_backward.cuh"

namespace baton::cuda {
namespace {

// Computes, for each channel, the sums of g and of g * (x - mean).
template <typename T, int V, bool kPlanes>
__global__ void __launch_bounds__(kNormThreads, 1)
    GradientSumsKernel(NormGradientArgs<T> args, NormLayout layout,
                       NormPartials<Compute<T>> partials) {
  using A = Compute<T>;
  __shared__ NormTotals<A, V, kPlanes, StreamLanes(V)> totals;
  const NormWalk<V, kPlanes> walk(layout);
  A mean[V], scale[V], shift[V], sums[2][V] = {};
  walk.TakeGlobal(args.mean, mean);
  walk.TakeGlobal(args.scale, scale);
  walk.TakeGlobal(args.shift, shift);
  ForSteps<4>(
      0, walk.steps(),
      [&](int k) { return ReadGradient<V, false>(args, walk.Offset(k)); },
      [&](const NormGradientPacks<T, V>& packs, int k) {
        A g[V], x[V];
        Unpack(packs.x, x);
        MaskGradient(args, packs, x, scale, shift, g);
        if (args.g != nullptr)
          WritePack(args.g + walk.Offset(k), Rounded<T>(g));
        AddGradients(g, x, mean, sums);
      });
  totals.Add(sums, layout.lane_bits);
  partials.Write(totals, walk.width());
}

// Computes dx = g * scale + x * slope + offset. Every block computes its
// group's coefficients; the first block of the group stores the gradients of
// the parameters.
template <typename T, int V, bool kPlanes>
__global__ void __launch_bounds__(kNormThreads, 1)
    InputGradientKernel(NormGradientArgs<T> args, NormLayout layout,
                        NormPartials<Compute<T>> partials,
                        BackwardChannels<Compute<T>> channels) {
  using A = Compute<T>;
  constexpr int kWidth = kPlanes ? 1 : V * StreamLanes(V);
  __shared__ SharedGradientAffine<A, kWidth> affine;
  const NormWalk<V, kPlanes> walk(layout);
  const int own = static_cast<int>(threadIdx.x);
  const int channel = walk.first_channel() + own;
  if (own < walk.width() && channel < layout.channels) {
    A first, second;
    partials.Read(walk.group(), walk.width(), own, first, second);
    affine.Set(own,
               channels.FromSums(channel, first, second, walk.slab() == 0));
  }
  __syncthreads();
  A scale[V], slope[V], offset[V], shift[V];
  walk.TakeShared(affine.scale, scale);
  walk.TakeShared(affine.slope, slope);
  walk.TakeShared(affine.offset, offset);
  walk.TakeGlobal(args.shift, shift);
  ForSteps<4>(
      0, walk.steps(),
      [&](int k) {
        return ReadGradient<V, true>(args, walk.OffsetFromStart(k));
      },
      [&](const NormGradientPacks<T, V>& packs, int k) {
        A g[V], x[V];
        Unpack(packs.x, x);
        MaskGradient(args, packs, x, scale, shift, g);
        WritePack(args.dx + walk.OffsetFromStart(k),
                  InputGradient<T>(g, x, scale, slope, offset));
      });
}

}  // namespace

void LaunchGradientSums(const Launch& launch, const NormView& view,
                        const NormGrid& grid, const NormBackward& args,
                        const Tensor& partials) {
  VisitNorm(view, args.x.dtype(), [&](auto type, auto pack, auto planes) {
    using T = typename decltype(type)::type;
    using A = Compute<T>;
    LaunchNorm(
        launch, grid,
        GradientSumsKernel<T, decltype(pack)::value, decltype(planes)::value>,
        GradientArgsOf<T>(args), grid.layout,
        NormPartials<A>{DataOf<A>(partials), grid.partials()});
  });
}

void LaunchInputGradient(const Launch& launch, const NormView& view,
                         const NormGrid& grid, const NormBackward& args,
                         const Tensor& partials, int count) {
  VisitNorm(view, args.x.dtype(), [&](auto type, auto pack, auto planes) {
    using T = typename decltype(type)::type;
    using A = Compute<T>;
    LaunchNorm(
        launch, grid,
        InputGradientKernel<T, decltype(pack)::value, decltype(planes)::value>,
        GradientArgsOf<T>(args), grid.layout,
        NormPartials<A>{DataOf<A>(partials), count}, ChannelsOf<A>(args));
  });
}

}  // namespace baton::cuda
