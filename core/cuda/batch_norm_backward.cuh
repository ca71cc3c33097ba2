// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/cuda/batch_norm_launch.cuh"

// The parts that the kernels of batch norm's backward share: dy, x and what the
// ReLU's mask is computed from. g is dy through the mask.
namespace baton::cuda {

template <typename T>
struct NormGradientArgs {
  using A = Compute<T>;
  // The mask is y > 0 or, if y is null, x * scale + shift > 0; if scale is also
  // null, there is no mask.
  const T *dy, *x, *y;
  const A *mean, *scale, *shift;
  T *g, *dx;  // g is null if it is not stored
};

template <typename T>
NormGradientArgs<T> GradientArgsOf(const NormBackward& args) {
  using A = Compute<T>;
  const bool from_x = args.relu && !args.y.defined();
  return {.dy = DataOf<const T>(args.dy),
          .x = DataOf<const T>(args.x),
          .y = args.relu ? DataOf<const T>(args.y) : nullptr,
          .mean = DataOf<const A>(args.mean),
          .scale = from_x ? DataOf<const A>(args.scale) : nullptr,
          .shift = from_x ? DataOf<const A>(args.shift) : nullptr,
          .g = DataOf<T>(args.g),
          .dx = DataOf<T>(args.dx)};
}

template <typename T, int V>
struct NormGradientPacks {
  Packed<T, V> dy, x, y;
};

// With `kOnce`, dy and x are not read again soon.
template <int V, bool kOnce, typename T>
__device__ __forceinline__ NormGradientPacks<T, V> ReadGradient(
    const NormGradientArgs<T>& args, int64_t at) {
  NormGradientPacks<T, V> packs;
  packs.dy = kOnce ? ReadPackOnce<V>(args.dy + at) : ReadPack<V>(args.dy + at);
  packs.x = kOnce ? ReadPackOnce<V>(args.x + at) : ReadPack<V>(args.x + at);
  if (args.y != nullptr) packs.y = ReadPack<V>(args.y + at);
  return packs;
}

// Computes g = dy through the mask; `x` has the values of packs.x.
template <typename T, int V, typename A>
__device__ __forceinline__ void MaskGradient(
    const NormGradientArgs<T>& args, const NormGradientPacks<T, V>& packs,
    const A (&x)[V], const A (&scale)[V], const A (&shift)[V], A (&g)[V]) {
  Unpack(packs.dy, g);
  if (args.y != nullptr) {
    A y[V];
    Unpack(packs.y, y);
#pragma unroll
    for (int i = 0; i < V; ++i) g[i] = y[i] > A(0) ? g[i] : A(0);
  } else if (args.scale != nullptr) {
#pragma unroll
    for (int i = 0; i < V; ++i)
      g[i] = fma(x[i], scale[i], shift[i]) > A(0) ? g[i] : A(0);
  }
}

template <int V, typename A>
__device__ __forceinline__ void AddGradients(const A (&g)[V], const A (&x)[V],
                                             const A (&mean)[V],
                                             A (&sums)[2][V]) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    sums[0][i] += g[i];
    sums[1][i] = fma(g[i], x[i] - mean[i], sums[1][i]);
  }
}

// Returns dx of a pack.
template <typename T, int V, typename A>
__device__ __forceinline__ Packed<T, V> InputGradient(const A (&g)[V],
                                                      const A (&x)[V],
                                                      const A (&scale)[V],
                                                      const A (&slope)[V],
                                                      const A (&offset)[V]) {
  A value[V];
#pragma unroll
  for (int i = 0; i < V; ++i)
    value[i] = fma(g[i], scale[i], fma(x[i], slope[i], offset[i]));
  return Rounded<T>(value);
}

// A group's coefficients in shared memory.
template <typename A, int kWidth>
struct SharedGradientAffine {
  A scale[kWidth], slope[kWidth], offset[kWidth];
  __device__ void Set(int i, const GradientAffine<A>& affine) {
    scale[i] = affine.scale;
    slope[i] = affine.slope;
    offset[i] = affine.offset;
  }
};

}  // namespace baton::cuda
