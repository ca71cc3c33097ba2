// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#include "core/status.h"

namespace baton {

// Calls `fn(std::type_identity<T>{})` with the element type of `dtype`.
template <typename Fn>
decltype(auto) VisitDType(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(std::type_identity<float>{});
    case DType::kF64:
      return fn(std::type_identity<double>{});
    case DType::kF16:
      return fn(std::type_identity<Half>{});
    case DType::kBF16:
      return fn(std::type_identity<BFloat16>{});
    case DType::kI32:
      return fn(std::type_identity<int32_t>{});
    case DType::kI64:
      return fn(std::type_identity<int64_t>{});
    case DType::kU8:
      return fn(std::type_identity<uint8_t>{});
    case DType::kBool:
      break;
  }
  return fn(std::type_identity<bool>{});
}

// Like VisitDType, for f32, f64, f16 and bf16; throws Error led by `op` for
// others.
template <typename Fn>
decltype(auto) VisitFloating(const char* op, DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(std::type_identity<float>{});
    case DType::kF64:
      return fn(std::type_identity<double>{});
    case DType::kF16:
      return fn(std::type_identity<Half>{});
    case DType::kBF16:
      return fn(std::type_identity<BFloat16>{});
    default:
      Fail(op, absl::StrCat("expected a floating dtype, got ", Name(dtype)));
  }
}

// Like VisitDType, for kernels that only take f32 and f64: double for f64, else
// float.
template <typename Fn>
decltype(auto) VisitReal(DType dtype, Fn&& fn) {
  return dtype == DType::kF64 ? fn(std::type_identity<double>{})
                              : fn(std::type_identity<float>{});
}

template <typename T>
inline constexpr bool kIsSmallFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The type in which arithmetic on T is done.
template <typename T>
using ComputeType = std::conditional_t<kIsSmallFloat<T>, float, T>;

// Converts `value` to To. Floating values outside an integer type's range
// become its nearest limit, and NaN becomes 0; integers wrap, as in C++.
template <typename To, typename From>
inline To Convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsSmallFloat<From>) {
    return Convert<To>(static_cast<float>(value));
  } else if constexpr (kIsSmallFloat<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<To> &&
                       std::is_floating_point_v<From>) {
    // The upper bound, 2^digits, is exact in any floating type.
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr To kHalfEnd = std::numeric_limits<To>::max() / 2 + 1;
    constexpr From kEnd = From(2) * static_cast<From>(kHalfEnd);
    if (!(value > kLow)) {
      return value == value ? std::numeric_limits<To>::min() : To(0);
    }
    if (value >= kEnd) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace baton
