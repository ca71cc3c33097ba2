// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/crc32.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace baton::cpu {
namespace {

// By its definition, bit by bit.
uint32_t SlowCrc32(uint32_t before, const uint8_t* data, size_t bytes) {
  uint32_t rest = ~before;
  for (size_t i = 0; i < bytes; ++i) {
    rest ^= data[i];
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest >> 1) ^ (rest % 2 == 1 ? 0xedb88320u : 0);
  }
  return ~rest;
}

TEST(Crc32, OfTheUsualTextIsTheUsualNumber) {
  const std::string text = "123456789";
  EXPECT_EQ(Crc32(0, text.data(), text.size()), 0xcbf43926u);
}

TEST(Crc32, IsThatOfAnyLengthAtAnyAddress) {
  std::mt19937 random(3);
  std::vector<uint8_t> bytes(20'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  std::vector<size_t> lengths = {16'384, 16'397};
  for (size_t length = 0; length < 300; ++length) lengths.push_back(length);
  for (const size_t length : lengths) {
    for (const size_t offset : {size_t{0}, size_t{1}, size_t{15}}) {
      const uint8_t* from = bytes.data() + offset;
      for (const uint32_t before : {0u, 0xdeadbeefu, ~0u}) {
        EXPECT_EQ(Crc32(before, from, length), SlowCrc32(before, from, length))
            << length << " bytes from " << offset;
      }
    }
  }
}

}  // namespace
}  // namespace baton::cpu
