// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace baton {

// The values are part of the wire format and never change.
enum class DType : uint8_t {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kBF16 = 3,
  kI32 = 4,
  kI64 = 5,
  kU8 = 6,
  kBool = 7,
};

// IEEE 754 binary16 and bfloat16 as they are stored; arithmetic is done in
// float. Conversions round to nearest even.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
};

// The conversions are inline and branchless, so that loops over them vectorize.
inline Half::Half(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = all & 0x7fffffffu;
  // Below 2^-14 the FPU rounds for us: floats from 0.5 on are spaced like f16's
  // subnormals.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      0x3f000000u;
  const uint32_t normal =
      (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t rounded = magnitude < 0x38800000u    ? subnormal
                           : magnitude >= 0x47800000u ? special
                                                      : normal;
  bits = static_cast<uint16_t>(((all >> 16) & 0x8000u) | rounded);
}

inline Half::operator float() const {
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(magnitude)) *
                              5.9604644775390625e-8f);  // 2^-24
  const uint32_t normal = (magnitude << 13) + 0x38000000u;
  const uint32_t special = (magnitude << 13) | 0x7f800000u;
  const uint32_t widened = magnitude < 0x400u     ? subnormal
                           : magnitude >= 0x7c00u ? special
                                                  : normal;
  return std::bit_cast<float>(((bits & 0x8000u) << 16) | widened);
}

inline BFloat16::BFloat16(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (all >> 16) | 0x40u;
  bits = static_cast<uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? quiet_nan
                                                                 : rounded);
}

inline BFloat16::operator float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

size_t SizeOf(DType dtype);
const char* Name(DType dtype);  // "f32", "bf16", ...
std::optional<DType> DTypeFromName(const std::string& name);
std::optional<DType> DTypeFromWire(int value);
bool IsFloating(DType dtype);
bool IsHalf(DType dtype);  // f16 or bf16

template <typename T>
inline constexpr bool kIsElement = false;
template <typename T>
inline constexpr DType kDTypeOf = DType::kF32;
#define BATON_ELEMENT(type, dtype)               \
  template <>                                    \
  inline constexpr bool kIsElement<type> = true; \
  template <>                                    \
  inline constexpr DType kDTypeOf<type> = DType::dtype;
BATON_ELEMENT(float, kF32)
BATON_ELEMENT(double, kF64)
BATON_ELEMENT(Half, kF16)
BATON_ELEMENT(BFloat16, kBF16)
BATON_ELEMENT(int32_t, kI32)
BATON_ELEMENT(int64_t, kI64)
BATON_ELEMENT(uint8_t, kU8)
BATON_ELEMENT(bool, kBool)
#undef BATON_ELEMENT

}  // namespace baton
