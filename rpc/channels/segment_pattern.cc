// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/segment_pattern.h"

#include <algorithm>
#include <cstddef>

namespace baton::rpc {
namespace {

constexpr size_t kProbeWords = 512;  // 4 KB

uint64_t Mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return x;
}

}  // namespace

void WritePattern(const Segment& segment, uint64_t seed) {
  auto* words = reinterpret_cast<uint64_t*>(segment.data());
  for (size_t i = 0; i < kProbeWords; ++i) words[i] = Mixed(seed + i);
}

bool HasPattern(const Segment& segment, uint64_t seed, bool reversed) {
  const auto* words = reinterpret_cast<const uint64_t*>(segment.data());
  for (size_t i = 0; i < kProbeWords; ++i) {
    const uint64_t word = reversed ? ~words[kProbeWords - 1 - i] : words[i];
    if (word != Mixed(seed + i)) return false;
  }
  return true;
}

void TurnPattern(const Segment& segment) {
  auto* words = reinterpret_cast<uint64_t*>(segment.data());
  std::reverse(words, words + kProbeWords);
  for (size_t i = 0; i < kProbeWords; ++i) words[i] = ~words[i];
}

}  // namespace baton::rpc
