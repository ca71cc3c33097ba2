// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/cpu/simd.h"

// These elementary functions have no branches and no calls in their f32 forms,
// so that loops over them vectorise. Errors are within 2 units in the last
// place, except Erf: 1.5e-7 absolute. f64 forms are the C library's.
namespace baton::cpu {

// Returns fn(args...). Integers other than bool are converted to unsigned ones,
// which wrap where signed ones would be undefined.
template <typename Fn, typename T, typename... Rest>
BATON_SIMD_INLINE T Wrapped(Fn fn, T first, Rest... rest) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::make_unsigned_t<std::common_type_t<T, int>>;
    return static_cast<T>(fn(static_cast<U>(first), static_cast<U>(rest)...));
  } else {
    return static_cast<T>(fn(first, rest...));
  }
}

BATON_SIMD_INLINE double Exp(double x) { return std::exp(x); }
BATON_SIMD_INLINE double Log(double x) { return std::log(x); }
BATON_SIMD_INLINE double Tanh(double x) { return std::tanh(x); }
BATON_SIMD_INLINE double Erf(double x) { return std::erf(x); }

// exp(x) = 2^n * exp(r) with |r| <= ln(2)/2; a minimax polynomial gives exp(r).
BATON_SIMD_INLINE float Exp(float x) {
  constexpr float kShift = 12582912.f;  // 1.5 * 2^23: adding it rounds
  constexpr int32_t kShiftBits = 0x4b400000;
  x = x < -104.f ? -104.f : x;
  x = x > 89.f ? 89.f : x;
  const float shifted = x * 1.44269504088896341f + kShift;
  const float n = shifted - kShift;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.f;
  // 2^n is applied in two factors: a single one would over- or underflow too
  // early.
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - kShiftBits;
  const int32_t half = exponent >> 1;
  const auto factor = [](int32_t e) {
    return std::bit_cast<float>((static_cast<uint32_t>(e) + 127u) << 23);
  };
  return p * factor(half) * factor(exponent - half);
}

// log(x) = e * ln(2) + log(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
BATON_SIMD_INLINE float Log(float x) {
  constexpr float kSmallestNormal = 1.17549435e-38f;
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;
  const bool subnormal = x < kSmallestNormal;
  const float scaled = subnormal ? x * 8388608.f : x;  // by 2^23
  const uint32_t offset = std::bit_cast<uint32_t>(scaled) - kSqrtHalf;
  const int32_t exponent = static_cast<int32_t>(offset) >> 23;
  const float f =
      std::bit_cast<float>((offset & 0x007fffffu) + kSqrtHalf) - 1.f;
  const float e = static_cast<float>(exponent - (subnormal ? 23 : 0));
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const float square = f * f;
  const float tail = p * f * square - 2.12194440e-4f * e - 0.5f * square;
  const float finite = (f + tail) + 0.693359375f * e;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float positive = x < kInfinity ? finite : x;  // infinity and NaN stay
  const float at_zero =
      x < 0.f ? std::numeric_limits<float>::quiet_NaN() : -kInfinity;
  return x <= 0.f ? at_zero : positive;
}

template <typename T>
BATON_SIMD_INLINE T Sigmoid(T x) {
  return T(1) / (T(1) + Exp(-x));
}

BATON_SIMD_INLINE float Tanh(float x) {
  const float square = x * x;
  float p = -5.70498872745e-3f;
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const float small = p * square * x + x;
  const float magnitude = std::fabs(x);
  const float large =
      std::copysign(1.f - 2.f / (Exp(2.f * magnitude) + 1.f), x);
  return magnitude < 0.625f ? small : large;
}

// Formula 7.1.26 of Abramowitz and Stegun.
BATON_SIMD_INLINE float Erf(float x) {
  const float magnitude = std::fabs(x);
  const float t = 1.f / (1.f + 0.3275911f * magnitude);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = p * t * Exp(-magnitude * magnitude);
  return std::copysign(1.f - tail, x);
}

}  // namespace baton::cpu
