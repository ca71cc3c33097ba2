// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <type_traits>

#include "core/cuda/device_types.cuh"

// Operations on values as kernels compute them. Integers wrap; bool adds as
// "or", subtracts as "exclusive or" and multiplies as "and".
namespace baton::cuda {

template <typename T>
using Unsigned = std::make_unsigned_t<std::common_type_t<T, int>>;
template <typename T>
inline constexpr bool kWraps =
    std::is_integral_v<T> && !std::is_same_v<T, bool>;

struct AddOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a | b;
    } else if constexpr (kWraps<T>) {
      using U = Unsigned<T>;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};
struct SubOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a ^ b;
    } else if constexpr (kWraps<T>) {
      using U = Unsigned<T>;
      return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    } else {
      return a - b;
    }
  }
};
struct MulOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a & b;
    } else if constexpr (kWraps<T>) {
      using U = Unsigned<T>;
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
};
struct DivOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      // Dividing the smallest integer by -1 wraps.
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
        return SubOp{}(T(0), a);
      }
    }
    return static_cast<T>(a / b);
  }
};
// Returns NaN if either side is NaN.
struct MaximumOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return (a > b || a != a) ? a : b;
  }
};
struct MinimumOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return (a < b || a != a) ? a : b;
  }
};

struct PowOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return pow(a, b);
  }
};

// Applies Op to elements of T in T's compute type.
template <typename T, typename Op>
struct Computed {
  template <typename... Values>
  __device__ T operator()(Values... values) const {
    return As<T>(op(As<Compute<T>>(values)...));
  }
  Op op;
};

}  // namespace baton::cuda
