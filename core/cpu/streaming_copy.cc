// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "core/cpu/simd.h"
#include "core/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace baton::cpu {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
constexpr size_t kUsualCacheBytes = 32 * kMegabyte;
// A virtual machine with two cores reported the 480 MB of its host, most of
// which others use; there, copies of 16 to 102 MB are 1.2 to 1.6 times as fast
// past the cache.
constexpr size_t kMostCacheBytes = 128 * kMegabyte;

// One thread does not use the whole bandwidth of the memory of machines with
// many cores: on one with 32 cores, two threads are 2.1 times as fast.
constexpr int kManyThreads = 5;
constexpr size_t kMostParts = 4, kLeastPart = 2 * kMegabyte;

// Returns what the kernel reports. sysconf() asks the processor, which in a
// virtual machine also counts the caches of other guests' cores; memcpy
// believes it.
size_t SharedCacheBytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  size_t kilobytes = 0;
  const size_t told = file >> kilobytes ? kilobytes << 10 : kUsualCacheBytes;
  return std::min(told, kMostCacheBytes);
}

#if defined(__x86_64__)

constexpr size_t kLine = 64;
constexpr size_t kHalf = sizeof(__m256i);

// `to` is aligned to a cache line. This copies half a line at a time: with
// quarters there is less to gain, and with whole lines no more.
__attribute__((target("avx"))) void CopyLines(std::byte* to,
                                              const std::byte* from,
                                              size_t lines) {
  for (; lines > 0; --lines, to += kLine, from += kLine) {
    const auto* source = reinterpret_cast<const __m256i*>(from);
    const __m256i low = _mm256_loadu_si256(source);
    const __m256i high = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + kHalf), high);
  }
  // Streaming stores are not ordered with others.
  _mm_sfence();
}

bool CanPassCache() { return kSimdLevel != SimdLevel::kBaseline; }

void CopyPastCache(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t past_line = reinterpret_cast<uintptr_t>(to) % kLine;
  const size_t head = std::min(bytes, (kLine - past_line) % kLine);
  const size_t lines = (bytes - head) / kLine;
  const size_t done = head + lines * kLine;
  std::memcpy(to, from, head);
  CopyLines(to + head, from + head, lines);
  std::memcpy(to + done, from + done, bytes - done);
}

#else

bool CanPassCache() { return false; }

void CopyPastCache(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace

size_t StreamingCopyThreshold() {
  static const size_t threshold = SharedCacheBytes() / 4;
  return threshold;
}

void StreamingCopy(void* to, const void* from, size_t bytes, size_t together) {
  const bool past_cache =
      std::max(bytes, together) >= StreamingCopyThreshold() && CanPassCache();
  const auto copy = [=](int64_t begin, int64_t end) {
    std::byte* part = static_cast<std::byte*>(to) + begin;
    const std::byte* source = static_cast<const std::byte*>(from) + begin;
    const auto size = static_cast<size_t>(end - begin);
    if (past_cache) {
      CopyPastCache(part, source, size);
    } else {
      std::memcpy(part, source, size);
    }
  };
  const auto count = static_cast<int64_t>(bytes);
  if (ComputeThreads() < kManyThreads) return copy(0, count);
  const size_t grain = std::max(kLeastPart, bytes / kMostParts);
  ParallelFor(count, static_cast<int64_t>(grain), copy);
}

}  // namespace baton::cpu
