// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/proof.h"

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

}  // namespace baton::rpc
