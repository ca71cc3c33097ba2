// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/proof.h"

#include <algorithm>
#include <cstddef>
#include <random>

namespace baton::rpc {
namespace {

constexpr int64_t kProofWords = 512;

}  // namespace

Tensor ProofWords() {
  std::random_device seed;
  std::mt19937_64 next((uint64_t{seed()} << 32) | seed());
  Tensor words = Tensor::Empty({kProofWords}, {.dtype = DType::kI64});
  for (int64_t i = 0; i < kProofWords; ++i)
    words.data<int64_t>()[i] = static_cast<int64_t>(next());
  return words;
}

uint64_t SumOf(const Tensor& tensor) {
  uint64_t sum = 0xcbf29ce484222325ULL;
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
  for (size_t i = 0; i < tensor.nbytes(); ++i)
    sum = (sum ^ bytes[i]) * 0x100000001b3ULL;
  return sum;
}

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
