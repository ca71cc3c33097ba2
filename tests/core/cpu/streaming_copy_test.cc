// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/streaming_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "core/parallel.h"

namespace baton::cpu {
namespace {

constexpr size_t kMargin = 256;

constexpr uint8_t kUntouched = 0xa5;

// Bytes whose pattern comes again after a prime number of them, so that a copy
// that is off by a line or a page is not the same.
std::vector<uint8_t> Pattern(size_t bytes) {
  constexpr size_t kPeriod = 4099;
  std::vector<uint8_t> pattern(bytes);
  const size_t first = std::min(bytes, kPeriod);
  for (size_t i = 0; i < first; ++i) {
    pattern[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  }
  for (size_t done = first; done < bytes; done += kPeriod) {
    std::memcpy(&pattern[done], &pattern[0], std::min(kPeriod, bytes - done));
  }
  return pattern;
}

bool Untouched(const uint8_t* begin, const uint8_t* end) {
  return std::all_of(begin, end, [](uint8_t b) { return b == kUntouched; });
}

// Copies `bytes` between places that far from an aligned one, and looks at
// each byte there and at those around.
void ExpectCopied(size_t bytes, size_t to_offset, size_t from_offset) {
  SCOPED_TRACE(::testing::Message()
               << bytes << " from " << from_offset << " to " << to_offset);
  const std::vector<uint8_t> source = Pattern(bytes + 2 * kMargin);
  std::vector<uint8_t> target(bytes + 2 * kMargin, kUntouched);
  const auto aligned = [](const std::vector<uint8_t>& buffer) {
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    return (64 - address % 64) % 64;
  };
  uint8_t* to = target.data() + aligned(target) + to_offset;
  const uint8_t* from = source.data() + aligned(source) + from_offset;
  StreamingCopy(to, from, bytes);
  EXPECT_EQ(std::memcmp(to, from, bytes), 0);
  EXPECT_TRUE(Untouched(target.data(), to));
  EXPECT_TRUE(Untouched(to + bytes, target.data() + target.size()));
}

TEST(StreamingCopy, CopiesEachByteAndNoOther) {
  const size_t threshold = StreamingCopyThreshold();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4097}, threshold - 1,
                             threshold, threshold + 1, threshold + 63}) {
    ExpectCopied(bytes, 0, 0);
  }
}

TEST(StreamingCopy, TakesAnyAlignment) {
  const size_t bytes = StreamingCopyThreshold() + 100;
  for (const size_t to : {0, 1, 16, 63}) {
    for (const size_t from : {0, 4, 31, 63}) ExpectCopied(bytes, to, from);
  }
}

TEST(StreamingCopy, MayBeSharedByThreads) {
  const int threads = ComputeThreads();
  SetComputeThreads(8);
  constexpr size_t kMegabyte = size_t{1} << 20;
  for (const size_t bytes :
       {kMegabyte, 4 * kMegabyte - 1, 4 * kMegabyte, 7 * kMegabyte + 13,
        StreamingCopyThreshold() + 101}) {
    ExpectCopied(bytes, 5, 17);
  }
  SetComputeThreads(threads);
}

// More copies than there are threads that help, so that some are done before
// their helpers come.
TEST(StreamingCopy, ManyAtATime) {
  constexpr size_t kBytes = (size_t{9} << 20) + 77;
  const std::vector<uint8_t> source = Pattern(kBytes);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&source] {
      SetComputeThreads(8);
      std::vector<uint8_t> target(kBytes);
      for (int round = 0; round < 5; ++round) {
        std::fill(target.begin(), target.end(), kUntouched);
        StreamingCopy(target.data(), source.data(), kBytes);
        EXPECT_EQ(target, source);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace baton::cpu
