// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/tensor.h"
#include "tests/support/test_device.h"

// Copies within a device: orders of memory, casts, fills.
namespace baton {
namespace {

using test::Put;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
                          DType::kI32, DType::kI64, DType::kU8,  DType::kBool};

std::vector<double> Doubles(const Tensor& x) {
  return x.To(Device::Cpu()).To(DType::kF64).ToVector<double>();
}

// Exact in every dtype but bool.
double NumberAt(int64_t i) { return static_cast<double>(i % 101); }

Tensor Numbered(const Shape& shape, DType dtype) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(NumberAt(i));
  return Put(Tensor::From(values, shape).To(dtype));
}

double InDType(double value, DType dtype) {
  return dtype == DType::kBool ? value != 0 : value;
}

TEST(Copy, TurnsImagesOverAndBack) {
  const std::vector<Shape> shapes = {{2, 3, 5, 7},    {1, 8, 8, 8},
                                     {2, 13, 9, 7},   {3, 70, 33, 4},
                                     {1, 64, 1, 130}, {2, 129, 3, 3}};
  for (DType dtype : kAll) {
    for (const Shape& shape : shapes) {
      const Tensor image = Numbered(shape, dtype);
      const Tensor last = image.Contiguous(MemoryFormat::kChannelsLast);
      // The memory of `last`, read in its own order.
      const auto memory = Doubles(last.Permute({0, 2, 3, 1}));
      const int64_t channels = shape[1], pixels = shape[2] * shape[3];
      for (size_t i = 0; i < memory.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const int64_t pixel = at / channels % pixels;
        const int64_t n = at / channels / pixels;
        const int64_t from = (n * channels + at % channels) * pixels + pixel;
        ASSERT_EQ(memory[i], InDType(NumberAt(from), dtype))
            << Name(dtype) << shape.ToString() << " at " << i;
      }
      ASSERT_EQ(Doubles(last.Contiguous()), Doubles(image))
          << Name(dtype) << shape.ToString();
    }
  }
}

TEST(Copy, TurnsAndCastsAtOnce) {
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF64}) {
    const Tensor image = Numbered({2, 19, 11, 10}, DType::kF32);
    const Tensor last =
        Tensor::Empty(image.shape(), {.dtype = dtype,
                                      .device = image.device(),
                                      .format = MemoryFormat::kChannelsLast});
    last.CopyFrom(image);
    EXPECT_EQ(Doubles(last), Doubles(image)) << Name(dtype);
    const Tensor back = Tensor::EmptyLike(image);
    back.CopyFrom(last);
    EXPECT_EQ(Doubles(back), Doubles(image)) << Name(dtype);
  }
}

TEST(Copy, TakesAnyStrides) {
  for (DType dtype : kAll) {
    const Tensor x = Numbered({6, 10, 14}, dtype);
    const Tensor view = x.Slice(2, 1, 14, 3).Transpose(0, 2).Slice(1, 1, 9);
    const auto values = Doubles(view.Contiguous());
    size_t i = 0;
    for (int64_t c = 0; c < 5; ++c) {
      for (int64_t b = 1; b < 9; ++b) {
        for (int64_t a = 0; a < 6; ++a, ++i) {
          const double want = NumberAt((a * 10 + b) * 14 + 1 + 3 * c);
          ASSERT_EQ(values[i], InDType(want, dtype)) << Name(dtype);
        }
      }
    }
    const Tensor target = Put(Tensor::Zeros({8, 6}, {.dtype = dtype}));
    target.Slice(0, 1, 8, 2)
        .CopyFrom(x.Select(1, 0).Select(0, 0).Slice(0, 1, 7));
    const auto rows = Doubles(target);
    for (size_t at = 0; at < rows.size(); ++at) {
      const size_t row = at / 6, column = at % 6;
      const double want = row % 2 == 0 ? 0 : NumberAt(1 + column);
      ASSERT_EQ(rows[at], InDType(want, dtype)) << Name(dtype);
    }
  }
}

TEST(Copy, CastsBetweenAllDTypes) {
  // Long enough for whole packs and a rest.
  for (DType from : kAll) {
    const Tensor x = Numbered({1003}, from);
    for (DType to : kAll) {
      const auto values = Doubles(x.To(to));
      const auto shifted = Doubles(x.Slice(0, 1, 1003).To(to));
      for (size_t i = 0; i < values.size(); ++i) {
        const double held = InDType(NumberAt(static_cast<int64_t>(i)), from);
        ASSERT_EQ(values[i], InDType(held, to))
            << Name(from) << " to " << Name(to);
        if (i > 0) {
          ASSERT_EQ(shifted[i - 1], values[i]);
        }
      }
    }
  }
}

TEST(Copy, CastsSaturateAndRound) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor x = Put<float>({-1.5f, 2.75f, 300, kInf, -kInf, NAN, -3e9f});
  constexpr int32_t kLow = std::numeric_limits<int32_t>::min();
  constexpr int32_t kHigh = std::numeric_limits<int32_t>::max();
  constexpr int64_t kLow64 = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh64 = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(x.To(DType::kI32).ToVector<int32_t>(),
              ElementsAre(-1, 2, 300, kHigh, kLow, 0, kLow));
  EXPECT_THAT(x.To(DType::kI64).ToVector<int64_t>(),
              ElementsAre(-1, 2, 300, kHigh64, kLow64, 0, -3'000'000'000));
  EXPECT_THAT(x.To(DType::kU8).ToVector<uint8_t>(),
              ElementsAre(0, 2, 255, 255, 0, 0, 0));
  EXPECT_THAT(x.To(DType::kBool).ToVector<bool>(), Each(true));
  EXPECT_THAT(x.To(DType::kF64).To(DType::kI64).ToVector<int64_t>(),
              ElementsAre(-1, 2, 300, kHigh64, kLow64, 0, -3'000'000'000));
  EXPECT_THAT(x.To(DType::kBF16).To(DType::kU8).ToVector<uint8_t>(),
              ElementsAre(0, 2, 255, 255, 0, 0, 0));
  // Ties go to even, and what f16 cannot hold becomes infinite.
  const Tensor ties = Put<float>({2049, 2051, 257, 259, 65520, 1e-8f});
  EXPECT_THAT(Doubles(ties.To(DType::kF16)),
              ElementsAre(2048, 2052, 257, 259, kInf, 0));
  EXPECT_THAT(Doubles(ties.To(DType::kBF16).Slice(0, 2, 4)),
              ElementsAre(256, 260));
}

TEST(Copy, WideIntegersKeepTheirBits) {
  constexpr int64_t kBig = (int64_t{1} << 53) + 1;
  const Tensor x = Put<int64_t>({kBig, -kBig, (int64_t{5} << 32) + 7});
  EXPECT_THAT(x.Clone().ToVector<int64_t>(),
              ElementsAre(kBig, -kBig, (int64_t{5} << 32) + 7));
  EXPECT_THAT(x.To(DType::kI32).ToVector<int32_t>(), ElementsAre(1, -1, 7));
  EXPECT_THAT(x.To(DType::kU8).ToVector<uint8_t>(), ElementsAre(1, 255, 7));
}

TEST(Fill, ReachesEveryElementAndNoOther) {
  for (DType dtype : kAll) {
    const double value = dtype == DType::kBool ? 1 : 3;
    const Tensor x = Put(Tensor::Zeros({7, 9, 11}, {.dtype = dtype}));
    x.Slice(1, 2, 9, 3).Slice(2, 1, 10).Fill(value);
    const auto values = Doubles(x);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t column = i % 11, row = i / 11 % 9;
      const bool inside =
          row >= 2 && row % 3 == 2 && column >= 1 && column < 10;
      ASSERT_EQ(values[i], inside ? value : 0) << Name(dtype) << " " << i;
    }
    x.Fill(0);
    EXPECT_THAT(Doubles(x), Each(0)) << Name(dtype);
  }
}

TEST(Fill, EmptyTensorsStayEmpty) {
  const Tensor x = Put(Tensor::Zeros({0, 4}));
  x.Fill(2);
  EXPECT_EQ(x.Clone().numel(), 0);
  EXPECT_EQ(x.To(DType::kI64).numel(), 0);
}

}  // namespace
}  // namespace baton
