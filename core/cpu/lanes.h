// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/cpu/simd.h"

namespace baton::cpu {

// Combines load(0) .. load(count - 1) in 64 lanes, and then the lanes in a
// tree. The order depends only on `count`, and the loop vectorises.
template <typename L, typename Load, typename Combine>
BATON_SIMD_INLINE L ReduceLanes(int64_t count, L identity, Load load,
                                Combine combine) {
  constexpr int kLanes = 64;
  L lanes[kLanes];
  for (L& lane : lanes) lane = identity;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      lanes[j] = combine(lanes[j], load(i + j));
    }
  }
  for (int j = 0; i < count; ++i, ++j) lanes[j] = combine(lanes[j], load(i));
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) {
      lanes[j] = combine(lanes[j], lanes[j + half]);
    }
  }
  return lanes[0];
}

}  // namespace baton::cpu
