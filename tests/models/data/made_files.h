// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "models/data/jpeg.h"

// Tiny files in the formats that models/data reads.
namespace baton::data {

// A u8 image [3, height, width] with value(c, y, x).
template <typename Value>
Tensor MakeImage(int64_t height, int64_t width, const Value& value) {
  Tensor image = Tensor::Empty({3, height, width}, {.dtype = DType::kU8});
  uint8_t* pixel = image.data<uint8_t>();
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        *pixel++ = static_cast<uint8_t>(value(c, y, x));
  return image;
}

// The JPEG of an image of one colour.
inline std::string FlatJpeg(int64_t height, int64_t width, int red, int green,
                            int blue) {
  const int colour[] = {red, green, blue};
  return EncodeJpeg(
             MakeImage(height, width,
                       [&](int64_t c, int64_t, int64_t) { return colour[c]; }))
      .value();
}

using NamedBytes = std::vector<std::pair<std::string, std::string>>;

// The bytes of a tar archive, gzipped or not. Names of folders end in a slash.
std::string MakeTar(const NamedBytes& files, bool gzip);

// The bytes of one gzipped file.
std::string MakeGzip(const std::string& content);

// An IDX header for unsigned bytes, and the data.
inline std::string MakeIdx(const std::vector<uint32_t>& extents,
                           const std::string& data) {
  std::string bytes = {0, 0, 8, static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes += static_cast<char>(extent >> shift & 0xff);
  }
  return bytes + data;
}

// Pixel (c, y, x) of an image [C, H, W].
inline int At(const Tensor& image, int64_t c, int64_t y, int64_t x) {
  return static_cast<int>(image.Select(0, c).Select(0, y).Select(0, x).Item());
}

}  // namespace baton::data
