// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "core/dtype_visit.h"

// The types of elements in kernels. Half and BFloat16 have the layout of CUDA's
// own types and become those in kernels.
namespace baton::cuda {

template <typename T>
struct DeviceTypeOf {
  using type = T;
};
template <>
struct DeviceTypeOf<Half> {
  using type = __half;
};
template <>
struct DeviceTypeOf<BFloat16> {
  using type = __nv_bfloat16;
};
template <typename T>
using DeviceType = typename DeviceTypeOf<T>::type;

template <typename T>
inline constexpr bool kIsSmall =
    std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

// The type in which arithmetic on elements T is done.
template <typename T>
using Compute = std::conditional_t<kIsSmall<T>, float, T>;
// The type of sums of elements T.
template <typename T>
using Sum =
    std::conditional_t<kIsSmall<T>, float,
                       std::conditional_t<std::is_integral_v<T>, int64_t, T>>;

template <typename To, typename From>
__device__ __forceinline__ To As(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsSmall<From>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, __half>) {
    return __float2half_rn(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, __nv_bfloat16>) {
    return __float2bfloat16_rn(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

// N elements that one access of up to 16 bytes moves.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  static_assert(sizeof(T) * N <= 16);
  T at[N];
};
// The number of elements of T in 16 bytes.
template <typename T>
inline constexpr int kPackSize = 16 / static_cast<int>(sizeof(T));

inline bool IsAligned(const void* data, size_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

// Calls fn(std::type_identity<T>{}) with the type that kernels see.
template <typename Fn>
void VisitDeviceType(DType dtype, Fn&& fn) {
  VisitDType(dtype, [&](auto type) {
    fn(std::type_identity<DeviceType<typename decltype(type)::type>>{});
  });
}
template <typename Fn>
void VisitDeviceFloating(const char* op, DType dtype, Fn&& fn) {
  VisitFloating(op, dtype, [&](auto type) {
    fn(std::type_identity<DeviceType<typename decltype(type)::type>>{});
  });
}

}  // namespace baton::cuda
