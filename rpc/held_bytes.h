// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "core/tensor.h"

// How much memory a value of an exported type holds, for batonctl and leak
// reports. T::HeldBytes() tells if the type has it; else the size is known for
// tensors, types that wrap one (v.tensor()), strings, numbers and vectors of
// these. It is computed once, when the value is made and nothing else refers to
// it.
namespace baton::rpc::internal {

inline constexpr int64_t kUnknownBytes = -1;

template <typename T>
int64_t HeldBytesOf(const T& value) {
  if constexpr (std::same_as<T, Tensor>) {
    return value.defined() ? static_cast<int64_t>(value.nbytes()) : 0;
  } else if constexpr (requires {
                         { value.HeldBytes() } -> std::convertible_to<int64_t>;
                       }) {
    return value.HeldBytes();
  } else if constexpr (requires {
                         { value.tensor() } -> std::convertible_to<Tensor>;
                       }) {
    return HeldBytesOf<Tensor>(value.tensor());
  } else if constexpr (std::same_as<T, std::string>) {
    return static_cast<int64_t>(value.size());
  } else if constexpr (std::is_arithmetic_v<T>) {
    return sizeof(T);
  } else {
    return kUnknownBytes;
  }
}

template <typename E>
int64_t HeldBytesOf(const std::vector<E>& values) {
  int64_t sum = 0;
  for (const E& value : values) {
    const int64_t bytes = HeldBytesOf(value);
    if (bytes < 0) return kUnknownBytes;
    sum += bytes;
  }
  return sum;
}

}  // namespace baton::rpc::internal
