// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/cuda/device_types.cuh"

// Moves runs of elements between memory and registers, in accesses of up to 16
// bytes.
namespace baton::cuda {

// The number of elements in one access of a run of kCount.
template <typename T, int kCount>
inline constexpr int kRunPack = kCount < kPackSize<T> ? kCount : kPackSize<T>;

// `from` is aligned for accesses of kRunPack elements.
template <typename T, int kCount>
__device__ __forceinline__ void LoadRun(const T* from, T (&values)[kCount]) {
  constexpr int kPack = kRunPack<T, kCount>;
#pragma unroll
  for (int i = 0; i < kCount; i += kPack) {
    const auto pack = *reinterpret_cast<const Pack<T, kPack>*>(from + i);
#pragma unroll
    for (int j = 0; j < kPack; ++j) values[i + j] = pack.at[j];
  }
}

template <typename T, int kCount>
__device__ __forceinline__ void StoreRun(T* to, const T (&values)[kCount]) {
  constexpr int kPack = kRunPack<T, kCount>;
#pragma unroll
  for (int i = 0; i < kCount; i += kPack) {
    Pack<T, kPack> pack;
#pragma unroll
    for (int j = 0; j < kPack; ++j) pack.at[j] = values[i + j];
    *reinterpret_cast<Pack<T, kPack>*>(to + i) = pack;
  }
}

// Loads only the first `left` elements if there are fewer than kCount; the
// others become 0. Does not need aligned memory.
template <typename T, int kCount>
__device__ __forceinline__ void LoadSome(const T* from, int64_t left,
                                         bool aligned, T (&values)[kCount]) {
  if (aligned && left >= kCount) return LoadRun(from, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = i < left ? from[i] : As<T>(0.f);
  }
}

template <typename T, int kCount>
__device__ __forceinline__ void StoreSome(T* to, int64_t left, bool aligned,
                                          const T (&values)[kCount]) {
  if (aligned && left >= kCount) return StoreRun(to, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (i < left) to[i] = values[i];
  }
}

// Loads runs of S as values of C.
template <typename S, typename C, int kCount>
__device__ __forceinline__ void LoadAs(const void* from, int64_t first,
                                       int64_t left, bool aligned,
                                       C (&values)[kCount]) {
  S elements[kCount];
  LoadSome(static_cast<const S*>(from) + first, left, aligned, elements);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = As<C>(elements[i]);
}

template <typename S, typename C, int kCount>
__device__ __forceinline__ void StoreAs(void* to, int64_t first, int64_t left,
                                        bool aligned,
                                        const C (&values)[kCount]) {
  S elements[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) elements[i] = As<S>(values[i]);
  StoreSome(static_cast<S*>(to) + first, left, aligned, elements);
}

}  // namespace baton::cuda
