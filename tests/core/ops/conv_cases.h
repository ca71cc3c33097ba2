// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "core/ops/conv.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

// Convolutions of many kinds, and what they must give.
namespace baton::testing {

struct ConvCase {
  const char* name;
  Shape x, weight;
  ops::Conv2dOptions options;
};

inline std::vector<ConvCase> ConvCases() {
  return {
      {"one by one", {2, 16, 5, 7}, {32, 16, 1, 1}, {}},
      {"strided one by one", {2, 32, 8, 6}, {16, 32, 1, 1}, {.stride = {2, 2}}},
      {"strided one by one of few channels",
       {3, 6, 9, 7},
       {10, 6, 1, 1},
       {.stride = {2, 2}}},
      {"three by three", {3, 16, 9, 8}, {24, 16, 3, 3}, {.padding = {1, 1}}},
      {"stem",
       {1, 3, 20, 18},
       {16, 3, 7, 7},
       {.stride = {2, 2}, .padding = {3, 3}}},
      {"odd channels",
       {2, 5, 6, 7},
       {7, 5, 3, 3},
       {.stride = {2, 1}, .padding = {1, 0}}},
      {"dilated",
       {2, 4, 11, 10},
       {6, 4, 3, 2},
       {.padding = {2, 1}, .dilation = {2, 3}}},
      {"grouped",
       {2, 8, 6, 6},
       {12, 4, 3, 3},
       {.padding = {1, 1}, .groups = 2}},
      {"depthwise",
       {2, 16, 7, 6},
       {16, 1, 3, 3},
       {.stride = {2, 2}, .padding = {1, 1}, .groups = 16}},
      {"whole image", {2, 8, 4, 5}, {3, 8, 4, 5}, {}},
      {"one channel", {3, 1, 12, 12}, {6, 1, 5, 5}, {}},
      {"one pixel", {4, 16, 1, 1}, {8, 16, 1, 1}, {}},
      {"many weights", {2, 512, 2, 2}, {512, 512, 1, 1}, {}},
  };
}

// Calls body(o, c, output and input coordinates, kernel coordinates) for every
// product of the convolution.
template <typename Body>
void ForEachProduct(const ConvCase& c, const Shape& y, Body body) {
  const ops::Conv2dOptions& options = c.options;
  const int64_t per_group = c.weight[0] / options.groups;
  const int64_t inputs = c.weight[1];
  const int64_t stride[] = {options.stride[0], options.stride[1]};
  const int64_t padding[] = {options.padding[0], options.padding[1]};
  const int64_t dilation[] = {options.dilation[0], options.dilation[1]};
  const Shape window({1, inputs, c.weight[2], c.weight[3]});
  ForEach4(y, [&](int64_t n, int64_t o, int64_t oh, int64_t ow) {
    ForEach4(window, [&](int64_t, int64_t i, int64_t kh, int64_t kw) {
      const int64_t h = oh * stride[0] - padding[0] + kh * dilation[0];
      const int64_t w = ow * stride[1] - padding[1] + kw * dilation[1];
      const int64_t channel = o / per_group * inputs + i;
      body(n, o, oh, ow, channel, h, w, i, kh, kw);
    });
  });
}

// Compares results and gradients on the test's device with sums of products.
inline void CheckConv(const ConvCase& c, DType dtype, MemoryFormat format,
                      bool weight_channels_last) {
  const std::string what = std::string(c.name) + " " + Name(dtype);
  const double tolerance = ToleranceOf(dtype);
  const Tensor x = test::Put(Numbers(c.x, dtype, 1, format));
  const Tensor weight =
      test::Put(Numbers(c.weight, dtype, 2,
                        weight_channels_last ? MemoryFormat::kChannelsLast
                                             : MemoryFormat::kContiguous));
  const Tensor bias = test::Put(Numbers({c.weight[0]}, dtype, 3));
  const Tensor y = ops::Conv2d(x, weight, bias, c.options);
  const Tensor dy = test::Put(Numbers(y.shape(), dtype, 4, format));

  Array4 ax(x), aw(weight), ady(dy);
  const std::vector<double> ab = bias.To(DType::kF64).ToVector<double>();
  Array4 ey(y.shape()), edx(c.x), edw(c.weight);
  ForEach4(y.shape(), [&](int64_t n, int64_t o, int64_t h, int64_t w) {
    ey.at(n, o, h, w) = ab[static_cast<size_t>(o)];
  });
  ForEachProduct(c, y.shape(),
                 [&](int64_t n, int64_t o, int64_t oh, int64_t ow, int64_t ch,
                     int64_t h, int64_t w, int64_t i, int64_t kh, int64_t kw) {
                   if (!ax.inside(h, w)) return;
                   const double g = ady.at(n, o, oh, ow);
                   const double k = aw.at(o, i, kh, kw);
                   ey.at(n, o, oh, ow) += ax.at(n, ch, h, w) * k;
                   edx.at(n, ch, h, w) += g * k;
                   edw.at(o, i, kh, kw) += g * ax.at(n, ch, h, w);
                 });
  ExpectNear(y, ey, tolerance, what + " y");
  EXPECT_EQ(y.IsContiguous(x.SuggestFormat()), true) << what;
  ExpectNear(ops::Conv2dBackwardInput(dy, weight, c.x, c.options), edx,
             tolerance, what + " dx");
  const Tensor dweight = ops::Conv2dBackwardWeight(dy, x, c.weight, c.options,
                                                   weight.SuggestFormat());
  ExpectNear(dweight, edw, tolerance, what + " dweight");
  EXPECT_EQ(dweight.strides(), weight.strides()) << what;
}

}  // namespace baton::testing
