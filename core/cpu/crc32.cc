// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/crc32.h"

#include <immintrin.h>
#include <zlib.h>

namespace baton::cpu {
namespace {

constexpr size_t kFoldedBlock = sizeof(__m128i);
constexpr size_t kFoldedLanes =
    4;  // processed at once, because a product has a long latency
constexpr size_t kFoldedBytes = kFoldedLanes * kFoldedBlock;

#define BATON_CLMUL __attribute__((target("pclmul")))

BATON_CLMUL __m128i LoadBlock(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Returns a block that has, at the position of `next`, the same remainder as
// both blocks together. `powers` are the values of the halves of `block` at
// that position: x^n modulo the polynomial.
BATON_CLMUL __m128i FoldBlock(__m128i block, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(block, powers, 0x00);
  const __m128i high = _mm_clmulepi64_si128(block, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Gopal and others, "Fast CRC computation for generic polynomials using
// PCLMULQDQ", Intel 2009. `bytes` is a multiple of the stride and not 0. The
// strides are folded into one block, which has the remainder of all of them;
// zlib computes it.
BATON_CLMUL uint32_t FoldedCrc32(uint32_t before, const uint8_t* data,
                                 size_t bytes) {
  const __m128i over_stride = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i over_block = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lanes[kFoldedLanes];
  for (size_t i = 0; i < kFoldedLanes; ++i)
    lanes[i] = LoadBlock(data + i * kFoldedBlock);
  lanes[0] =
      _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(~before)));
  for (size_t at = kFoldedBytes; at < bytes; at += kFoldedBytes) {
    for (size_t i = 0; i < kFoldedLanes; ++i)
      lanes[i] = FoldBlock(lanes[i], over_stride,
                           LoadBlock(data + at + i * kFoldedBlock));
  }
  __m128i all = lanes[0];
  for (size_t i = 1; i < kFoldedLanes; ++i)
    all = FoldBlock(all, over_block, lanes[i]);
  uint8_t block[kFoldedBlock];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(block), all);
  return static_cast<uint32_t>(crc32_z(~uint32_t{0}, block, kFoldedBlock));
}

#undef BATON_CLMUL

}  // namespace

uint32_t Crc32(uint32_t before, const void* data, size_t bytes) {
  static const bool can_fold = __builtin_cpu_supports("pclmul") != 0;
  const auto* at = static_cast<const uint8_t*>(data);
  const size_t folded = can_fold ? bytes / kFoldedBytes * kFoldedBytes : 0;
  if (folded > 0) before = FoldedCrc32(before, at, folded);
  return static_cast<uint32_t>(crc32_z(before, at + folded, bytes - folded));
}

}  // namespace baton::cpu
