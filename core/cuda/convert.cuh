// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <limits>

#include "core/cuda/device_types.cuh"

namespace baton::cuda {

// Converts like core/dtype_visit.h's Convert on the CPU, with the same results.
template <typename To, typename From>
__device__ __forceinline__ To ConvertTo(From value) {
  if constexpr (kIsSmall<From> && !std::is_same_v<To, From>) {
    return ConvertTo<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<To> &&
                       std::is_floating_point_v<From>) {
    using Limits = std::numeric_limits<To>;
    constexpr From kLow = static_cast<From>(Limits::min());
    constexpr From kEnd = From(2) * static_cast<From>(Limits::max() / 2 + 1);
    if (!(value > kLow)) return value == value ? Limits::min() : To(0);
    return value >= kEnd ? Limits::max() : static_cast<To>(value);
  } else {
    return As<To>(value);
  }
}

}  // namespace baton::cuda
