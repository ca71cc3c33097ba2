// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/streaming_copy.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <latch>
#include <memory>

#include "absl/functional/function_ref.h"
#include "core/cpu/simd.h"
#include "core/executor.h"
#include "core/parallel.h"
#include "core/status.h"

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
constexpr size_t kMostThreads = 4;
// Parts are small, so that a thread that wakes late leaves more of them to the
// others.
constexpr size_t kMostParts = 16, kLeastPart = 2 * kMegabyte;

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

// The parts of a copy, which threads take one after the other.
class SharedCopy {
 public:
  using CopyPart = absl::FunctionRef<void(size_t part)>;

  SharedCopy(size_t parts, CopyPart copy)
      : parts_(parts), copy_(copy), left_(static_cast<ptrdiff_t>(parts)) {}

  // Copies parts until all are taken. A helper that comes after Await has
  // returned finds none, so it does not use `copy`.
  void Help() {
    for (size_t part; (part = next_++) < parts_;) {
      copy_(part);
      left_.count_down();
    }
  }
  void Await() { left_.wait(); }

 private:
  const size_t parts_;
  const CopyPart copy_;
  std::atomic<size_t> next_{0};
  std::latch left_;
};

// The threads are not a team of ParallelFor, which always has all compute
// threads: on 32 cores it takes longer to wake them than to copy 16 MB. The
// pool is never destroyed, because copies may run until the process ends.
void CopyTogether(size_t parts, SharedCopy::CopyPart copy) {
  static auto* const helpers = new ThreadPool(kMostThreads - 1, "baton-copy");
  const auto shared = std::make_shared<SharedCopy>(parts, copy);
  // If no thread can be started, this one copies all parts.
  CatchErrors([&] {
    for (size_t i = 1; i < std::min(parts, kMostThreads); ++i)
      helpers->Post([shared] { shared->Help(); });
  }).IgnoreError();
  shared->Help();
  shared->Await();
}

}  // namespace

size_t StreamingCopyThreshold() {
  static const size_t threshold = SharedCacheBytes() / 4;
  return threshold;
}

void StreamingCopy(void* to, const void* from, size_t bytes, size_t together) {
  const bool past_cache =
      std::max(bytes, together) >= StreamingCopyThreshold() && CanPassCache();
  const size_t most = ComputeThreads() < kManyThreads ? 1 : kMostParts;
  const size_t parts = std::clamp<size_t>(bytes / kLeastPart, 1, most);
  const auto copy = [=](size_t part) {
    const size_t begin = bytes / parts * part;
    const size_t end = part + 1 < parts ? begin + bytes / parts : bytes;
    std::byte* target = static_cast<std::byte*>(to) + begin;
    const std::byte* source = static_cast<const std::byte*>(from) + begin;
    if (past_cache) {
      CopyPastCache(target, source, end - begin);
    } else {
      std::memcpy(target, source, end - begin);
    }
  };
  if (parts == 1) return copy(0);
  CopyTogether(parts, copy);
}

}  // namespace baton::cpu
