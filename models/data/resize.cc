// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/status.h"
#include "models/data/transforms.h"

// Resizes in two passes, along rows and then along columns, and rounds to u8
// after each. To match Pillow bit for bit, the weights are fixed-point numbers,
// as Pillow's are.
namespace baton::data {
namespace {

constexpr int kFractionBits = 22;
constexpr int kHalf = 1 << (kFractionBits - 1);

// Output cell i is the weighted sum of `count` inputs from `first`.
struct Window {
  int64_t first = 0;
  int64_t count = 0;
  const int* weights = nullptr;
};

struct Filter {
  std::vector<Window> windows;
  std::vector<int> weights;
};

Filter TriangleFilter(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double reach = std::max(scale, 1.0);  // half of the triangle's base
  const auto slots = static_cast<size_t>(std::ceil(reach)) * 2 + 1;
  Filter filter;
  filter.weights.resize(slots * static_cast<size_t>(out));
  std::vector<double> exact(slots);
  for (int64_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t low = std::lround(center - reach);
    const int64_t high = std::lround(center + reach);
    Window window;
    window.first = std::max<int64_t>(low, 0);
    window.count = std::min(high, in) - window.first;
    double sum = 0;
    for (int64_t k = 0; k < window.count; ++k) {
      const double x = static_cast<double>(window.first + k) - center + 0.5;
      exact[static_cast<size_t>(k)] = std::max(0.0, 1 - std::abs(x / reach));
      sum += exact[static_cast<size_t>(k)];
    }
    int* weights = &filter.weights[static_cast<size_t>(i) * slots];
    for (int64_t k = 0; k < window.count; ++k)
      weights[k] = static_cast<int>(std::lround(exact[static_cast<size_t>(k)] /
                                                sum * (1 << kFractionBits)));
    window.weights = weights;
    filter.windows.push_back(window);
  }
  return filter;
}

uint8_t Rounded(int sum) {
  return static_cast<uint8_t>(
      std::clamp((sum + kHalf) >> kFractionBits, 0, 255));
}

// in [rows, in, C] -> out [rows, windows, C].
void AlongRows(const uint8_t* in, int64_t rows, int64_t in_width,
               int64_t channels, const Filter& filter, uint8_t* out) {
  for (int64_t y = 0; y < rows; ++y, in += in_width * channels) {
    for (const Window& window : filter.windows) {
      const uint8_t* first = in + window.first * channels;
      for (int64_t c = 0; c < channels; ++c) {
        int sum = 0;
        for (int64_t k = 0; k < window.count; ++k)
          sum += first[k * channels + c] * window.weights[k];
        *out++ = Rounded(sum);
      }
    }
  }
}

// in [in, row] -> out [windows, row].
void AlongColumns(const uint8_t* in, int64_t row, const Filter& filter,
                  uint8_t* out) {
  std::vector<int> sums(static_cast<size_t>(row));
  for (const Window& window : filter.windows) {
    std::fill(sums.begin(), sums.end(), 0);
    for (int64_t k = 0; k < window.count; ++k) {
      const uint8_t* source = in + (window.first + k) * row;
      for (int64_t x = 0; x < row; ++x)
        sums[static_cast<size_t>(x)] += source[x] * window.weights[k];
    }
    for (const int sum : sums) *out++ = Rounded(sum);
  }
}

}  // namespace

Tensor ResizeImage(const Tensor& image, int64_t height, int64_t width) {
  Require(image.rank() == 3 && image.dtype() == DType::kU8 && image.numel() > 0,
          "resize", "expected a u8 image [C, H, W], got ", Name(image.dtype()),
          image.shape().ToString());
  Require(height > 0 && width > 0, "resize", "cannot resize to ", height, " x ",
          width);
  Tensor pixels = image.Permute({1, 2, 0}).Contiguous();  // [H, W, C]
  const int64_t channels = pixels.dim(2);
  if (pixels.dim(1) != width) {
    const Tensor wide =
        Tensor::Empty({pixels.dim(0), width, channels}, {.dtype = DType::kU8});
    AlongRows(pixels.data<uint8_t>(), pixels.dim(0), pixels.dim(1), channels,
              TriangleFilter(pixels.dim(1), width), wide.data<uint8_t>());
    pixels = wide;
  }
  if (pixels.dim(0) != height) {
    const Tensor high =
        Tensor::Empty({height, width, channels}, {.dtype = DType::kU8});
    AlongColumns(pixels.data<uint8_t>(), width * channels,
                 TriangleFilter(pixels.dim(0), height), high.data<uint8_t>());
    pixels = high;
  }
  return pixels.Permute({2, 0, 1});
}

}  // namespace baton::data
