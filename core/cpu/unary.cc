// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <type_traits>

#include "core/cpu/elementwise.h"
#include "core/cpu/map.h"
#include "core/cpu/math.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

// The number of elements worth a thread, if each takes some nanoseconds.
constexpr int64_t kCostlyGrain = 4096;

// Writes fn(x) to out, computed in T's compute type.
template <typename T, typename Fn>
void MapComputed(int64_t grain, Fn fn, const Tensor& out, const Tensor& x) {
  using C = ComputeType<T>;
  Map<T, T>(
      grain, [fn](T value) { return Convert<T>(fn(Convert<C>(value))); }, out,
      x);
}

template <typename Fn>
void MapFloating(int64_t grain, Fn fn, const Tensor& out, const Tensor& x) {
  VisitFloating("unary", out.dtype(), [&](auto type) {
    MapComputed<typename decltype(type)::type>(grain, fn, out, x);
  });
}

template <typename Fn>
void MapAny(Fn fn, const Tensor& out, const Tensor& x) {
  VisitDType(out.dtype(), [&](auto type) {
    MapComputed<typename decltype(type)::type>(kGrain, fn, out, x);
  });
}

// Integers wrap.
template <typename T>
BATON_SIMD_INLINE T Negative(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x;
  } else if constexpr (std::is_integral_v<T>) {
    return Wrapped([](auto v) { return 0 - v; }, x);
  } else {
    return -x;
  }
}

template <typename T>
BATON_SIMD_INLINE T Magnitude(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(x);
  } else if constexpr (std::is_signed_v<T>) {
    return x < 0 ? Negative(x) : x;
  } else {
    return x;
  }
}

template <typename T>
BATON_SIMD_INLINE T MultiplyAdd(T x, T scale, T shift) {
  if constexpr (std::is_same_v<T, bool>) {
    return (x & scale) | shift;
  } else {
    return Wrapped([](auto v, auto a, auto b) { return v * a + b; }, x, scale,
                   shift);
  }
}

}  // namespace

void Unary(UnaryOp op, const Tensor& out, const Tensor& x) {
  switch (op) {
    case UnaryOp::kNeg:
      return MapAny([](auto v) { return Negative(v); }, out, x);
    case UnaryOp::kAbs:
      return MapAny([](auto v) { return Magnitude(v); }, out, x);
    case UnaryOp::kExp:
      return MapFloating(
          kCostlyGrain, [](auto v) { return Exp(v); }, out, x);
    case UnaryOp::kLog:
      return MapFloating(
          kCostlyGrain, [](auto v) { return Log(v); }, out, x);
    case UnaryOp::kSqrt:
      return MapFloating(
          kGrain, [](auto v) { return std::sqrt(v); }, out, x);
    case UnaryOp::kSin:
      return MapFloating(
          kCostlyGrain, [](auto v) { return std::sin(v); }, out, x);
    case UnaryOp::kCos:
      return MapFloating(
          kCostlyGrain, [](auto v) { return std::cos(v); }, out, x);
  }
}

void Affine(const Tensor& out, const Tensor& x, double scale, double shift) {
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const C a = Convert<C>(scale);
    const C b = Convert<C>(shift);
    MapComputed<T>(
        kGrain, [a, b](C v) { return MultiplyAdd(v, a, b); }, out, x);
  });
}

void Pow(const Tensor& out, const Tensor& x, double exponent) {
  if (exponent == 2) {
    return MapFloating(
        kGrain, [](auto v) { return v * v; }, out, x);
  }
  if (exponent == 0.5) return Unary(UnaryOp::kSqrt, out, x);
  if (exponent == -0.5) {
    return MapFloating(
        kGrain, [](auto v) { return decltype(v)(1) / std::sqrt(v); }, out, x);
  }
  MapFloating(
      kCostlyGrain,
      [exponent](auto v) {
        return std::pow(v, static_cast<decltype(v)>(exponent));
      },
      out, x);
}

void Clamp(const Tensor& out, const Tensor& x, double low, double high) {
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const C lo = Convert<C>(low);
    const C hi = Convert<C>(high);
    MapComputed<T>(
        kGrain,
        [lo, hi](C v) -> C {
          const C raised = v < lo ? lo : v;
          return raised > hi ? hi : raised;
        },
        out, x);
  });
}

}  // namespace baton::cpu
