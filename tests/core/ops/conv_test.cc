// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/parallel.h"
#include "tests/core/ops/reference.h"

namespace baton::ops {
namespace {

using ::baton::testing::Array4;
using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::ForEach4;
using ::baton::testing::Numbers;
using ::baton::testing::ToleranceOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Case {
  const char* name;
  Shape x, weight;
  Conv2dOptions options;
};

std::vector<Case> Cases() {
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
void ForEachProduct(const Case& c, const Shape& y, Body body) {
  const int64_t per_group = c.weight[0] / c.options.groups;
  ForEach4(y, [&](int64_t n, int64_t o, int64_t oh, int64_t ow) {
    ForEach4(
        {1, c.weight[1], c.weight[2], c.weight[3]},
        [&](int64_t, int64_t i, int64_t kh, int64_t kw) {
          const int64_t h = oh * c.options.stride[0] - c.options.padding[0] +
                            kh * c.options.dilation[0];
          const int64_t w = ow * c.options.stride[1] - c.options.padding[1] +
                            kw * c.options.dilation[1];
          const int64_t channel = o / per_group * c.weight[1] + i;
          body(n, o, oh, ow, channel, h, w, i, kh, kw);
        });
  });
}

void CheckCase(const Case& c, DType dtype, MemoryFormat format,
               bool weight_channels_last) {
  const std::string what = std::string(c.name) + " " + Name(dtype);
  const double tolerance = ToleranceOf(dtype);
  const Tensor x = Numbers(c.x, dtype, 1, format);
  const Tensor weight =
      Numbers(c.weight, dtype, 2,
              weight_channels_last ? MemoryFormat::kChannelsLast
                                   : MemoryFormat::kContiguous);
  const Tensor bias = Numbers({c.weight[0]}, dtype, 3);
  const Tensor y = Conv2d(x, weight, bias, c.options);
  const Tensor dy = Numbers(y.shape(), dtype, 4, format);

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
  ExpectNear(Conv2dBackwardInput(dy, weight, c.x, c.options), edx, tolerance,
             what + " dx");
  ExpectNear(Conv2dBackwardWeight(dy, x, c.weight, c.options), edw, tolerance,
             what + " dweight");
}

TEST(Conv2d, EqualsTheSumOfProductsInF32) {
  for (const Case& c : Cases()) {
    CheckCase(c, DType::kF32, MemoryFormat::kContiguous, false);
    CheckCase(c, DType::kF32, MemoryFormat::kChannelsLast, false);
    CheckCase(c, DType::kF32, MemoryFormat::kChannelsLast, true);
  }
}

TEST(Conv2d, EqualsTheSumOfProductsInF64) {
  for (const Case& c : Cases()) {
    CheckCase(c, DType::kF64, MemoryFormat::kContiguous, false);
    CheckCase(c, DType::kF64, MemoryFormat::kChannelsLast, true);
  }
}

TEST(Conv2d, ComputesSmallFloatsInF32) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (const Case& c : Cases())
      CheckCase(c, dtype, MemoryFormat::kChannelsLast, false);
  }
}

TEST(Conv2d, BiasIsOptional) {
  const Tensor x = Numbers({1, 4, 5, 5}, DType::kF32, 1);
  const Tensor weight = Numbers({3, 4, 3, 3}, DType::kF32, 2);
  const Tensor plain = Conv2d(x, weight, Tensor(), {});
  const Tensor zero = Conv2d(x, weight, Tensor::Zeros({3}), {});
  ExpectNear(plain, Array4(zero), 1e-6, "without bias");
}

TEST(Conv2d, ReadsViews) {
  const Tensor x = Numbers({4, 6, 8, 8}, DType::kF32, 1);
  const Tensor weight = Numbers({3, 4, 3, 3}, DType::kF32, 2);
  const Tensor view = x.Slice(1, 1, 5).Transpose(2, 3);
  ExpectNear(Conv2d(view, weight, Tensor(), {}),
             Array4(Conv2d(view.Clone().Contiguous(), weight, Tensor(), {})),
             1e-6, "view");
}

TEST(Conv2d, SeesWeightsWrittenInPlace) {
  const Tensor x =
      Numbers({2, 16, 6, 6}, DType::kF32, 1, MemoryFormat::kChannelsLast);
  const Tensor weight = Numbers({16, 16, 3, 3}, DType::kF32, 2);
  const Tensor other = Numbers({16, 16, 3, 3}, DType::kF32, 3);
  Conv2d(x, weight, Tensor(), {});
  weight.CopyFrom(other);
  EXPECT_EQ(Conv2d(x, weight, Tensor(), {}).ToVector<float>(),
            Conv2d(x, other, Tensor(), {}).ToVector<float>());
}

TEST(Conv2d, GivesTheSameBitsEveryTimeAndOnEveryThread) {
  const Conv2dOptions options = {.padding = {1, 1}};
  const Tensor x =
      Numbers({6, 32, 14, 14}, DType::kF32, 1, MemoryFormat::kChannelsLast);
  const Tensor weight = Numbers({32, 32, 3, 3}, DType::kF32, 2);
  const int threads = ComputeThreads();
  const std::vector<float> y =
      Conv2d(x, weight, Tensor(), options).ToVector<float>();
  const std::vector<float> dw =
      Conv2dBackwardWeight(x, x, weight.shape(), options).ToVector<float>();
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      SetComputeThreads(threads);
      for (int repeat = 0; repeat < 5; ++repeat) {
        EXPECT_EQ(Conv2d(x, weight, Tensor(), options).ToVector<float>(), y);
        EXPECT_EQ(Conv2dBackwardWeight(x, x, weight.shape(), options)
                      .ToVector<float>(),
                  dw);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Conv2d, WorksForEachNumberOfThreads) {
  const int before = ComputeThreads();
  for (int threads : {1, 2, 3, 1}) {
    SetComputeThreads(threads);
    CheckCase(Cases()[2], DType::kF32, MemoryFormat::kChannelsLast, false);
  }
  SetComputeThreads(before);
}

TEST(Conv2d, AnEmptyBatchGivesEmptyResultsAndZeroGradients) {
  const Shape weight_shape = {3, 4, 3, 3};
  const Tensor x = Tensor::Zeros({0, 4, 8, 8});
  const Tensor weight = Numbers(weight_shape, DType::kF32, 1);
  const Tensor y = Conv2d(x, weight, Tensor(), {});
  EXPECT_EQ(y.shape(), Shape({0, 3, 6, 6}));
  EXPECT_EQ(Conv2dBackwardInput(y, weight, x.shape(), {}).shape(), x.shape());
  EXPECT_EQ(Conv2dBackwardWeight(y, x, weight_shape, {}).ToVector<float>(),
            std::vector<float>(108, 0.0f));
}

TEST(Conv2d, NamesWhatDoesNotFit) {
  const Tensor x = Tensor::Zeros({1, 4, 8, 8});
  const Tensor weight = Tensor::Zeros({6, 4, 3, 3});
  const Tensor none;
  const auto text = [&](const Tensor& a, const Tensor& w, const Tensor& b,
                        const Conv2dOptions& options) {
    return ErrorOf([&] { Conv2d(a, w, b, options); });
  };
  EXPECT_EQ(text(x, Tensor::Zeros({64, 3, 7}), none, {}),
            "[conv2d] expected weight [O, C/groups, kH, kW] for x [1, 4, 8, 8] "
            "and groups 1, got [64, 3, 7]");
  EXPECT_THAT(text(Tensor::Zeros({4, 8, 8}), weight, none, {}),
              StartsWith("[conv2d] expected x [N, C, H, W], got [4, 8, 8]"));
  EXPECT_THAT(text(x, weight, none, {.groups = 4}), HasSubstr("groups 4"));
  EXPECT_THAT(text(x, weight, Tensor::Zeros({5}), {}),
              HasSubstr("expected bias [6], got [5]"));
  EXPECT_THAT(text(x, weight, none, {.stride = {0, 1}}), HasSubstr("stride 0"));
  EXPECT_THAT(text(x, weight, none, {.dilation = {4, 4}}),
              HasSubstr("at least as large as the kernel"));
  EXPECT_THAT(text(x, weight.To(DType::kF64), none, {}),
              HasSubstr("expected weight of dtype f32, got f64"));
  EXPECT_THAT(text(x.To(DType::kI32), weight, none, {}),
              HasSubstr("floating dtype, got i32"));
  EXPECT_THAT(text(none, weight, none, {}), HasSubstr("undefined"));
}

TEST(Conv2d, BackwardNamesTheGradientThatDoesNotFit) {
  const Tensor x = Tensor::Zeros({1, 4, 8, 8});
  const Tensor weight = Tensor::Zeros({6, 4, 3, 3});
  const Tensor dy = Tensor::Zeros({1, 6, 8, 8});
  EXPECT_EQ(
      ErrorOf([&] { Conv2dBackwardInput(dy, weight, x.shape(), {}); }),
      "[conv2d_backward_input] expected dy [1, 6, 6, 6], got [1, 6, 8, 8]");
  EXPECT_THAT(ErrorOf([&] { Conv2dBackwardWeight(dy, x, weight.shape(), {}); }),
              StartsWith("[conv2d_backward_weight] expected dy [1, 6, 6, 6]"));
}

}  // namespace
}  // namespace baton::ops
