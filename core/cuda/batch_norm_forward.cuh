// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/cuda/pack_access.cuh"

namespace baton::cuda {

// Returns relu(x * scale + shift + residual) of a pack. MaskGradient repeats x
// * scale + shift bit for bit.
template <typename T, int V, typename A>
__device__ __forceinline__ Packed<T, V> Normalized(const Packed<T, V>& x,
                                                   const Packed<T, V>& residual,
                                                   bool has_residual, bool relu,
                                                   const A (&scale)[V],
                                                   const A (&shift)[V]) {
  A value[V];
  Unpack(x, value);
#pragma unroll
  for (int i = 0; i < V; ++i) value[i] = fma(value[i], scale[i], shift[i]);
  if (has_residual) {
    A more[V];
    Unpack(residual, more);
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] += more[i];
  }
#pragma unroll
  for (int i = 0; i < V; ++i) {
    // Written this way round, it passes NaN on.
    value[i] = relu && value[i] < A(0) ? A(0) : value[i];
  }
  return Rounded<T>(value);
}

// Adds x - center and its square to the sums of each channel. The center is the
// channel's first element: sums of differences from it lose no digits to a mean
// that is large compared to the deviation.
template <typename T, int V, typename A>
__device__ __forceinline__ void AddMoments(const Packed<T, V>& x,
                                           const A (&center)[V],
                                           A (&sums)[2][V]) {
  A value[V];
  Unpack(x, value);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const A d = value[i] - center[i];
    sums[0][i] += d;
    sums[1][i] = fma(d, d, sums[1][i]);
  }
}

}  // namespace baton::cuda
