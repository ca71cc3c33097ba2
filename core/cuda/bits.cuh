// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"

namespace baton::cuda {

// Calls fn(std::type_identity<T>{}) with the unsigned type of the dtype's size,
// for kernels that move elements without using their values.
template <typename Fn>
void VisitBits(DType dtype, Fn&& fn) {
  switch (SizeOf(dtype)) {
    case 1:
      return fn(std::type_identity<uint8_t>{});
    case 2:
      return fn(std::type_identity<uint16_t>{});
    case 4:
      return fn(std::type_identity<uint32_t>{});
    default:
      return fn(std::type_identity<uint64_t>{});
  }
}

}  // namespace baton::cuda
