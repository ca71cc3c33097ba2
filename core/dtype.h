// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace baton {

// Values are part of the wire format and never change.
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

// IEEE 754 binary16 and bfloat16 as stored; arithmetic happens in float.
// Conversions round to nearest even.
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

size_t SizeOf(DType dtype);
const char* Name(DType dtype);  // "f32", "bf16", ...
std::optional<DType> DTypeFromName(const std::string& name);
std::optional<DType> DTypeFromWire(int value);
bool IsFloating(DType dtype);

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
