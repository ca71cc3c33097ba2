// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace baton::dist {

// Returns bits each of which depends on all bits of the input (SplitMix64).
inline uint64_t MixBits(uint64_t bits) {
  bits = (bits ^ bits >> 30U) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ bits >> 27U) * 0x94D049BB133111EB;
  return bits ^ bits >> 31U;
}

}  // namespace baton::dist
