// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstring>

#include "core/cuda/device_types.cuh"

// Reads and writes packs in one access.
namespace baton::cuda {

template <int kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using type = unsigned char;
};
template <>
struct WordOf<2> {
  using type = unsigned short;
};
template <>
struct WordOf<4> {
  using type = unsigned int;
};
template <>
struct WordOf<8> {
  using type = uint2;
};
template <>
struct WordOf<16> {
  using type = uint4;
};
// N elements in their memory layout: two of 16 bits take one register, where an
// array of them would take two.
template <typename T, int N>
struct Packed {
  using Word = typename WordOf<static_cast<int>(sizeof(T)) * N>::type;
  Word word;
};

template <int N, typename T>
__device__ __forceinline__ Packed<T, N> ReadPack(const T* from) {
  using Word = typename Packed<T, N>::Word;
  return {*reinterpret_cast<const Word*>(from)};
}

// Reads what is not read again soon, so that it leaves the caches first.
template <int N, typename T>
__device__ __forceinline__ Packed<T, N> ReadPackOnce(const T* from) {
  using Word = typename Packed<T, N>::Word;
  return {__ldcs(reinterpret_cast<const Word*>(from))};
}

template <int N, typename T>
__device__ __forceinline__ void WritePack(T* to, const Packed<T, N>& pack) {
  *reinterpret_cast<typename Packed<T, N>::Word*>(to) = pack.word;
}

template <typename T, int N, typename A>
__device__ __forceinline__ void Unpack(const Packed<T, N>& pack, A (&to)[N]) {
  if constexpr (kIsSmall<T> && N % 2 == 0) {
    uint32_t pairs[N / 2];
    memcpy(pairs, &pack.word, sizeof(pairs));
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        to[2 * i] = __uint_as_float(pairs[i] << 16);
        to[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
      } else {
        __half2 two;
        memcpy(&two, &pairs[i], sizeof(two));
        const float2 wide = __half22float2(two);
        to[2 * i] = wide.x;
        to[2 * i + 1] = wide.y;
      }
    }
  } else {
    T values[N];
    memcpy(values, &pack.word, sizeof(values));
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = As<A>(values[i]);
  }
}

// Returns the values rounded to T.
template <typename T, typename A, int N>
__device__ __forceinline__ Packed<T, N> Rounded(const A (&values)[N]) {
  Packed<T, N> pack;
  if constexpr (kIsSmall<T> && N % 2 == 0) {
    uint32_t pairs[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        const __nv_bfloat162 two =
            __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
        memcpy(&pairs[i], &two, sizeof(two));
      } else {
        const __half2 two = __floats2half2_rn(values[2 * i], values[2 * i + 1]);
        memcpy(&pairs[i], &two, sizeof(two));
      }
    }
    memcpy(&pack.word, pairs, sizeof(pairs));
  } else {
    T rounded[N];
#pragma unroll
    for (int i = 0; i < N; ++i) rounded[i] = As<T>(values[i]);
    memcpy(&pack.word, rounded, sizeof(rounded));
  }
  return pack;
}

}  // namespace baton::cuda
