// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/streaming_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace baton::cpu {
namespace {

constexpr size_t kMargin = 256;

uint8_t ByteAt(size_t i) { return static_cast<uint8_t>(i * 2654435761u >> 13); }

// Copies `bytes` between places that far from an aligned one, and looks at
// each byte there and at those around.
void ExpectCopied(size_t bytes, size_t to_offset, size_t from_offset) {
  SCOPED_TRACE(testing::Message()
               << bytes << " from " << from_offset << " to " << to_offset);
  std::vector<uint8_t> source(bytes + 2 * kMargin);
  for (size_t i = 0; i < source.size(); ++i) source[i] = ByteAt(i);
  std::vector<uint8_t> target(bytes + 2 * kMargin, 0xa5);
  const auto aligned = [](std::vector<uint8_t>& buffer) {
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    return (64 - address % 64) % 64;
  };
  const size_t to = aligned(target) + to_offset;
  const size_t from = aligned(source) + from_offset;
  StreamingCopy(target.data() + to, source.data() + from, bytes);
  size_t wrong = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    const bool inside = i >= to && i < to + bytes;
    if (target[i] != (inside ? ByteAt(i - to + from) : 0xa5)) ++wrong;
  }
  EXPECT_EQ(wrong, 0u);
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

}  // namespace
}  // namespace baton::cpu
