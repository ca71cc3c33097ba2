// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using ::baton::test::Put;
using ::baton::testing::Array4;
using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::ForEach4;
using ::baton::testing::Numbers;
using ::baton::testing::ToleranceOf;
using ::testing::HasSubstr;

constexpr MemoryFormat kFormats[] = {MemoryFormat::kContiguous,
                                     MemoryFormat::kChannelsLast};
constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16,
                             DType::kBF16};

struct Case {
  Shape x;
  Pool2dOptions options;
};

std::vector<Case> Cases() {
  return {
      {{2, 3, 8, 6}, {}},
      {{2, 16, 9, 11}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
      {{1, 5, 7, 7}, {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}}},
      {{1, 4, 5, 5}, {.kernel = {2, 2}, .stride = {3, 3}}},
      {{2, 8, 4, 4}, {.kernel = {4, 4}, .stride = {4, 4}}},
      {{1, 8, 20, 19}, {.kernel = {17, 16}, .stride = {2, 1}}},
      {{3, 64, 12, 12},
       {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
  };
}

// Calls body(kh, kw, h, w) for each pixel of a window inside the image.
template <typename Body>
void ForEachPixel(const Case& c, int64_t oh, int64_t ow, Body body) {
  for (int64_t kh = 0; kh < c.options.kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < c.options.kernel[1]; ++kw) {
      const int64_t h = oh * c.options.stride[0] - c.options.padding[0] + kh;
      const int64_t w = ow * c.options.stride[1] - c.options.padding[1] + kw;
      if (h >= 0 && h < c.x[2] && w >= 0 && w < c.x[3]) body(h, w);
    }
  }
}

void CheckMax(const Case& c, DType dtype, MemoryFormat format) {
  const Tensor x = Put(Numbers(c.x, dtype, 1, format));
  const MaxPool2dResult result = MaxPool2d(x, c.options);
  const Tensor dy = Put(Numbers(result.y.shape(), dtype, 2, format));
  Array4 ax(x), ady(dy), ey(result.y.shape()), edx(c.x);
  ForEach4(ey.shape, [&](int64_t n, int64_t ch, int64_t oh, int64_t ow) {
    double best = -1e30;
    int64_t best_h = 0, best_w = 0;
    ForEachPixel(c, oh, ow, [&](int64_t h, int64_t w) {
      if (ax.at(n, ch, h, w) <= best) return;
      best = ax.at(n, ch, h, w);
      best_h = h;
      best_w = w;
    });
    ey.at(n, ch, oh, ow) = best;
    edx.at(n, ch, best_h, best_w) += ady.at(n, ch, oh, ow);
  });
  ExpectNear(result.y, ey, 0.0, "max");
  EXPECT_TRUE(result.y.IsContiguous(x.SuggestFormat()));
  ExpectNear(MaxPool2dBackward(dy, result.workspace, c.x, c.options), edx,
             ToleranceOf(dtype), "max gradient");
}

TEST(MaxPool2d, TakesTheFirstMaximumAndSendsItsGradientBack) {
  for (const Case& c : Cases()) {
    for (DType dtype : kFloats) {
      for (MemoryFormat format : kFormats) CheckMax(c, dtype, format);
    }
  }
}

TEST(MaxPool2d, PassesNaNAndInfinities) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x =
      Put<float>({1, nan, 3, 4, -inf, -inf, -inf, -inf}, {1, 2, 2, 2});
  const std::vector<float> y = MaxPool2d(x, {}).y.ToVector<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], -inf);
}

void CheckAverage(const Case& c, DType dtype, MemoryFormat format) {
  const Tensor x = Put(Numbers(c.x, dtype, 1, format));
  const Tensor y = AvgPool2d(x, c.options);
  const Tensor dy = Put(Numbers(y.shape(), dtype, 2, format));
  const double size =
      static_cast<double>(c.options.kernel[0] * c.options.kernel[1]);
  Array4 ax(x), ady(dy), ey(y.shape()), edx(c.x);
  ForEach4(ey.shape, [&](int64_t n, int64_t ch, int64_t oh, int64_t ow) {
    ForEachPixel(c, oh, ow, [&](int64_t h, int64_t w) {
      ey.at(n, ch, oh, ow) += ax.at(n, ch, h, w) / size;
      edx.at(n, ch, h, w) += ady.at(n, ch, oh, ow) / size;
    });
  });
  ExpectNear(y, ey, ToleranceOf(dtype), "average");
  ExpectNear(AvgPool2dBackward(dy, c.x, c.options), edx, ToleranceOf(dtype),
             "average gradient");
}

TEST(AvgPool2d, CountsPaddingInTheMean) {
  for (const Case& c : Cases()) {
    for (DType dtype : kFloats) {
      for (MemoryFormat format : kFormats) CheckAverage(c, dtype, format);
    }
  }
}

void CheckAdaptive(const Shape& shape, int64_t height, int64_t width,
                   DType dtype, MemoryFormat format) {
  const Tensor x = Put(Numbers(shape, dtype, 1, format));
  const Tensor y = AdaptiveAvgPool2d(x, height, width);
  const Tensor dy = Put(Numbers(y.shape(), dtype, 2, format));
  Array4 ax(x), ady(dy), ey({shape[0], shape[1], height, width}), edx(shape);
  ForEach4(ey.shape, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    const int64_t h0 = i * shape[2] / height;
    const int64_t h1 = ((i + 1) * shape[2] + height - 1) / height;
    const int64_t w0 = j * shape[3] / width;
    const int64_t w1 = ((j + 1) * shape[3] + width - 1) / width;
    const double size = static_cast<double>((h1 - h0) * (w1 - w0));
    for (int64_t h = h0; h < h1; ++h) {
      for (int64_t w = w0; w < w1; ++w) {
        ey.at(n, c, i, j) += ax.at(n, c, h, w) / size;
        edx.at(n, c, h, w) += ady.at(n, c, i, j) / size;
      }
    }
  });
  ExpectNear(y, ey, ToleranceOf(dtype), "adaptive");
  const Tensor dx = AdaptiveAvgPool2dBackward(dy, x);
  ExpectNear(dx, edx, ToleranceOf(dtype), "adaptive gradient");
  EXPECT_TRUE(dx.IsContiguous(x.SuggestFormat()));
}

TEST(AdaptiveAvgPool2d, CoversEveryPixel) {
  for (DType dtype : kFloats) {
    for (MemoryFormat format : kFormats) {
      CheckAdaptive({2, 16, 4, 4}, 1, 1, dtype, format);
      CheckAdaptive({3, 264, 7, 9}, 1, 1, dtype, format);
      CheckAdaptive({1, 3, 7, 5}, 3, 2, dtype, format);
      CheckAdaptive({2, 4, 3, 2}, 6, 7, dtype, format);
    }
  }
}

TEST(Pool, AnEmptyBatchGivesEmptyResults) {
  const Tensor x = Put(Tensor::Zeros({0, 4, 8, 8}));
  const MaxPool2dResult result = MaxPool2d(x, {});
  EXPECT_EQ(result.y.shape(), Shape({0, 4, 4, 4}));
  EXPECT_EQ(
      MaxPool2dBackward(result.y, result.workspace, x.shape(), {}).shape(),
      x.shape());
  EXPECT_EQ(AvgPool2d(x, {}).shape(), Shape({0, 4, 4, 4}));
  EXPECT_EQ(AdaptiveAvgPool2d(x, 1, 1).shape(), Shape({0, 4, 1, 1}));
}

TEST(Pool, NamesWhatDoesNotFit) {
  const Tensor x = Put(Tensor::Zeros({1, 2, 4, 4}));
  EXPECT_EQ(ErrorOf([&] {
              MaxPool2d(x, {.kernel = {5, 5}});
            }),
            "[max_pool2d] expected x at least as large as the kernel 5 with "
            "padding 0, got [1, 2, 4, 4]");
  EXPECT_THAT(ErrorOf([&] {
                AvgPool2d(x, {.padding = {2, 2}});
              }),
              HasSubstr("half of the kernel"));
  EXPECT_THAT(ErrorOf([] {
                MaxPool2d(Put(Tensor::Zeros({2, 4, 4})), {});
              }),
              HasSubstr("expected [N, C, H, W], got [2, 4, 4]"));
  EXPECT_THAT(ErrorOf([&] { MaxPool2d(x.To(DType::kI64), {}); }),
              HasSubstr("floating dtype, got i64"));
  EXPECT_THAT(ErrorOf([&] { AdaptiveAvgPool2d(x, 0, 1); }),
              HasSubstr("[adaptive_avg_pool2d] expected a size above 0"));
  EXPECT_THAT(ErrorOf([&] {
                MaxPool2dBackward(Put(Tensor::Zeros({1, 2, 3, 3})),
                                  MaxPool2d(x, {}).workspace, x.shape(), {});
              }),
              HasSubstr("expected dy [1, 2, 2, 2], got [1, 2, 3, 3]"));
  EXPECT_THAT(ErrorOf([&] {
                MaxPool2dBackward(Put(Tensor::Zeros({1, 2, 2, 2})), Tensor(),
                                  x.shape(), {});
              }),
              HasSubstr("workspace"));
}

}  // namespace
}  // namespace baton::ops
