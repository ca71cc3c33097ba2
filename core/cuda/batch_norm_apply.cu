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

// Computes y = x * scale + shift, plus the residual, through a ReLU. Every
// block computes its group's coefficients; the first block of the group stores
// them.
template <typename T, int V, bool kPlanes>
__global__ void __launch_bounds__(kNormThreads, 2)
    ApplyKernel(const T* x, const T* residual, T* y, bool relu,
                NormLayout layout, NormPartials<Compute<T>> partials,
                ForwardChannels<Compute<T>> channels) {
  using A = Compute<T>;
  constexpr int kWidth = kPlanes ? 1 : V * StreamLanes(V);
  __shared__ A scales[kWidth], shifts[kWidth];
  const NormWalk<V, kPlanes> walk(layout);
  const int own = static_cast<int>(threadIdx.x);
  const int channel = walk.first_channel() + own;
  if (own < walk.width() && channel < layout.channels) {
    NormAffine<A> affine;
    if (partials.data == nullptr) {
      affine = channels.FromRunning(channel);
    } else {
      A first, second;
      partials.Read(walk.group(), walk.width(), own, first, second);
      affine =
          channels.FromMoments(channel, As<A>(x[walk.OffsetOfChannel(channel)]),
                               first, second, walk.slab() == 0);
    }
    scales[own] = affine.scale;
    shifts[own] = affine.shift;
  }
  __syncthreads();
  A scale[V], shift[V];
  walk.TakeShared(scales, scale);
  walk.TakeShared(shifts, shift);
  // With more loads in flight, wide packs need more than 64 registers.
  ForSteps<(V > 4 ? 3 : 4)>(
      0, walk.steps(),
      [&](int k) {
        Loaded<T, V> loaded;
        const int64_t at = walk.OffsetFromStart(k);
        loaded.x = ReadPackOnce<V>(x + at);
        if (residual != nullptr)
          loaded.residual = ReadPackOnce<V>(residual + at);
        return loaded;
      },
      [&](const Loaded<T, V>& loaded, int k) {
        const auto result = Normalized(loaded.x, loaded.residual,
                                       residual != nullptr, relu, scale, shift);
        WritePack(y + walk.OffsetFromStart(k), result);
      });
}

}  // namespace

void LaunchApply(const Launch& launch, const NormView& view,
                 const NormGrid& grid, const NormForward& args,
                 const Tensor& partials, int count) {
  VisitNorm(view, args.x.dtype(), [&](auto type, auto pack, auto planes) {
    using T = typename decltype(type)::type;
    using A = Compute<T>;
    LaunchNorm(launch, grid,
               ApplyKernel<T, decltype(pack)::value, decltype(planes)::value>,
               DataOf<const T>(args.x), DataOf<const T>(args.residual),
               DataOf<T>(args.y), args.relu, grid.layout,
               NormPartials<A>{DataOf<A>(partials), count},
               ChannelsOf<A>(args));
  });
}

}  // namespace baton::cuda
