// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/cpu/math.h"
#include "core/cpu/simd.h"
#include "core/dtype_visit.h"

// Function objects that combine two elements, one for each BinaryOp.
namespace baton::cpu {

struct AddOp {
  template <typename T>
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    return Wrapped([](auto x, auto y) { return x + y; }, a, b);
  }
  BATON_SIMD_INLINE bool operator()(bool a, bool b) const { return a | b; }
};
struct MulOp {
  template <typename T>
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    return Wrapped([](auto x, auto y) { return x * y; }, a, b);
  }
  BATON_SIMD_INLINE bool operator()(bool a, bool b) const { return a & b; }
};
// Returns NaN if either side is NaN.
struct MaximumOp {
  template <typename T>
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct MinimumOp {
  template <typename T>
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    return ((a < b) | (a != a)) ? a : b;
  }
};

template <typename T, typename Op>
struct Computed {
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    using C = ComputeType<T>;
    return Convert<T>(Op{}(Convert<C>(a), Convert<C>(b)));
  }
};

}  // namespace baton::cpu
