// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tests/support/test_files.h"

// Images as MNIST's files have them.
namespace baton::examples {

inline std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(value >> shift & 0xff));
  return bytes;
}

// 600 images of 28x28 of which a bright square tells the label, by its place,
// and noise; gives their path.
inline std::string WriteDigits(const testing::TempFolder& folder) {
  constexpr int kImages = 600, kSide = 28;
  std::mt19937 random(3);
  std::string images = BigEndian(0x803) + BigEndian(kImages) +
                       BigEndian(kSide) + BigEndian(kSide);
  std::string labels = BigEndian(0x801) + BigEndian(kImages);
  for (int i = 0; i < kImages; ++i) {
    const int label = static_cast<int>(random() % 10);
    labels.push_back(static_cast<char>(label));
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const bool bright = y / 14 == label / 5 && x / 6 == label % 5;
        images.push_back(
            static_cast<char>(bright ? 200 + random() % 56 : random() % 100));
      }
    }
  }
  folder.Write("digits-labels-idx1-ubyte", labels);
  return folder.Write("digits-images-idx3-ubyte", images);
}

}  // namespace baton::examples
