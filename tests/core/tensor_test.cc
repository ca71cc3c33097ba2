// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tests/support/error_of.h"

namespace baton {
namespace {

using test::ErrorOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Iota(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.f);
  return Tensor::From(values, shape);
}

TEST(Tensor, FactoriesFill) {
  EXPECT_THAT(Tensor::Zeros({2}).ToVector<float>(), ElementsAre(0, 0));
  EXPECT_THAT(Tensor::Ones({2}, {.dtype = DType::kI64}).ToVector<int64_t>(),
              ElementsAre(1, 1));
  EXPECT_THAT(Tensor::Full({2}, 2.5, {.dtype = DType::kF64}).ToVector<double>(),
              ElementsAre(2.5, 2.5));
  EXPECT_THAT(Tensor::Arange(3).ToVector<int64_t>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(Tensor::Scalar(3).rank(), 0);
  EXPECT_EQ(Tensor::Scalar(3).Item(), 3);
  EXPECT_EQ(Tensor::Zeros({0, 3}).numel(), 0);
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, ViewsShareStorageAndVersion) {
  const Tensor x = Iota({2, 3});
  const Tensor row = x.Select(0, 1);
  const uint64_t before = x.version();
  row.Fill(9);
  EXPECT_EQ(x.version(), before + 1);
  EXPECT_THAT(x.ToVector<float>(), ElementsAre(0, 1, 2, 9, 9, 9));
}

TEST(Tensor, ViewsShowTheRightElements) {
  const Tensor x = Iota({2, 3});
  EXPECT_THAT(x.Transpose(0, 1).ToVector<float>(),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(x.Slice(1, 0, 3, 2).ToVector<float>(), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(x.Select(1, -1).ToVector<float>(), ElementsAre(2, 5));
  EXPECT_EQ(x.Unsqueeze(-1).shape(), Shape({2, 3, 1}));
  EXPECT_EQ(x.Unsqueeze(0).Squeeze(0).shape(), x.shape());
  EXPECT_THAT(Iota({3, 1}).Expand({3, 2}).ToVector<float>(),
              ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(Iota({2, 3, 4}).Flatten(1).shape(), Shape({2, 12}));
  EXPECT_EQ(Iota({2, 3, 4}).Permute({2, 0, 1}).shape(), Shape({4, 2, 3}));
}

TEST(Tensor, ReshapeIsAViewWherePossible) {
  const Tensor x = Iota({4, 6});
  EXPECT_EQ(x.Reshape({2, -1}).storage(), x.storage());
  EXPECT_EQ(x.Slice(1, 0, 3).Reshape({2, 2, 3}).storage(), x.storage());
  const Tensor copy = x.Transpose(0, 1).Reshape({24});
  EXPECT_NE(copy.storage(), x.storage());
  EXPECT_EQ(copy.ToVector<float>()[1], 6);
  EXPECT_EQ(Tensor::Scalar(1).Reshape({1, 1}).shape(), Shape({1, 1}));
  EXPECT_EQ(Tensor::Zeros({0, 2}).Reshape({2, 0, 5}).numel(), 0);
}

TEST(Tensor, SplitLeavesTheRestInTheLastPart) {
  const auto parts = Iota({5, 2}).Split(2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].shape(), Shape({1, 2}));
  EXPECT_EQ(Tensor::Zeros({0, 2}).Split(3).size(), 1u);
}

TEST(Tensor, ChannelsLastRoundTrips) {
  for (int64_t c : {1, 3, 17, 64}) {
    for (int64_t w : {1, 5, 33}) {
      const Tensor x = Iota({2, c, 4, w});
      const Tensor last = x.Contiguous(MemoryFormat::kChannelsLast);
      EXPECT_TRUE(last.IsContiguous(MemoryFormat::kChannelsLast));
      EXPECT_EQ(last.ToVector<float>(), x.ToVector<float>()) << c << " " << w;
      EXPECT_EQ(last.Clone().strides(), last.strides());
    }
  }
}

TEST(Tensor, CastsBetweenAllDTypes) {
  const Tensor x = Tensor::From<double>({0, 1, 2, 200});
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 7; ++to) {
      const auto a = static_cast<DType>(from);
      const auto b = static_cast<DType>(to);
      const std::vector<double> want =
          x.To(a).To(DType::kF64).ToVector<double>();
      EXPECT_EQ(x.To(a).To(b).To(DType::kF64).ToVector<double>(), want)
          << Name(a) << " " << Name(b);
    }
  }
  EXPECT_THAT(Tensor::From<float>({-1e20f, 1e20f, NAN})
                  .To(DType::kI32)
                  .ToVector<int32_t>(),
              ElementsAre(std::numeric_limits<int32_t>::min(),
                          std::numeric_limits<int32_t>::max(), 0));
}

TEST(Tensor, CopyFromBroadcastsAndCasts) {
  const Tensor x = Tensor::Zeros({2, 2});
  x.CopyFrom(Tensor::From<int64_t>({1, 2}));
  EXPECT_THAT(x.ToVector<float>(), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(ErrorOf([&] { x.CopyFrom(Iota({3})); }), HasSubstr("[expand]"));
  EXPECT_THAT(ErrorOf([&] { Iota({1}).Expand({4}).CopyFrom(Iota({4})); }),
              HasSubstr("[copy_from]"));
}

TEST(Tensor, CopyFromAnOverlappingViewReadsTheOldElements) {
  const Tensor x = Iota({5});
  x.Slice(0, 1, 5).CopyFrom(x.Slice(0, 0, 4));
  EXPECT_THAT(x.ToVector<float>(), ElementsAre(0, 0, 1, 2, 3));
}

TEST(Tensor, FromStorageRejectsWhatReachesOutside) {
  const auto storage = Storage::Allocate(64, Device::Cpu());
  auto make = [&](const Shape& shape, const Dims& strides, int64_t offset) {
    return ErrorOf([&] {
      (void)Tensor::FromStorage(storage, DType::kF32, shape, strides, offset);
    });
  };
  constexpr int64_t kBig = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(make({4, 4}, {4, 1}, 0), "no error");
  EXPECT_EQ(make({0}, {1}, 16), "no error");
  EXPECT_EQ(make({0, kBig}, {kBig, kBig}, 0), "no error");
  EXPECT_EQ(make({kBig / 8}, {0}, 0), "no error");
  for (const std::string& error :
       {make({4, 4}, {4, 1}, 1), make({-1}, {1}, 0), make({4}, {-1}, 3),
        make({4}, {1}, -1), make({kBig}, {1}, 0), make({2}, {kBig}, 0),
        make({2, 2}, {kBig, kBig}, 0), make({kBig, 2}, {0, 0}, 0),
        make({1}, {1}, kBig), make({0}, {1}, 17), make({4}, {}, 0),
        make({3}, {kBig}, kBig), make({kBig}, {0}, 0)}) {
    EXPECT_NE(error, "no error");
  }
}

TEST(Tensor, BadArgumentsNameTheOp) {
  const Tensor x = Iota({2, 3});
  EXPECT_THAT(ErrorOf([&] { (void)x.Reshape({4}); }), HasSubstr("[reshape]"));
  EXPECT_THAT(ErrorOf([&] {
                (void)x.Reshape({-1, -1});
              }),
              HasSubstr("[reshape]"));
  EXPECT_THAT(ErrorOf([&] { (void)x.Transpose(0, 2); }),
              HasSubstr("[transpose] axis 2 is out of range for rank 2"));
  EXPECT_THAT(ErrorOf([&] { (void)x.Slice(0, 1, 5); }), HasSubstr("[slice]"));
  EXPECT_THAT(ErrorOf([&] { (void)x.Select(0, 2); }), HasSubstr("[select]"));
  EXPECT_THAT(ErrorOf([&] { (void)x.Squeeze(0); }), HasSubstr("[squeeze]"));
  EXPECT_THAT(ErrorOf([&] {
                (void)x.Permute({0, 0});
              }),
              HasSubstr("[permute]"));
  EXPECT_THAT(ErrorOf([&] { (void)x.data<double>(); }), HasSubstr("[data]"));
  EXPECT_THAT(ErrorOf([&] { (void)x.Item(); }), HasSubstr("[item]"));
  EXPECT_THAT(ErrorOf([&] { (void)Tensor::Empty({-1}); }),
              HasSubstr("negative extent"));
  EXPECT_THAT(ErrorOf([&] {
                (void)Tensor::Empty({1ll << 40, 1ll << 40});
              }),
              HasSubstr("2^63"));
  EXPECT_THAT(ErrorOf([&] { (void)x.Split(0); }), HasSubstr("[split]"));
}

// Built without CUDA, and with it on a machine that has fewer GPUs.
TEST(Tensor, OnAnAbsentGpuSaysWhatIsMissing) {
  EXPECT_THAT(
      ErrorOf([] { (void)Tensor::Zeros({2}, {.device = Device::Cuda(63)}); }),
      AnyOf(HasSubstr("-DBATON_CUDA=ON"),
            HasSubstr("there is no cuda:63: this process sees")));
}

TEST(Tensor, ToStringShowsSmallTensors) {
  EXPECT_EQ(Iota({2}).ToString(), "f32[2] cpu {0, 1}");
  EXPECT_EQ(Iota({20}).ToString(), "f32[20] cpu");
  EXPECT_EQ(Tensor().ToString(), "undefined");
}

}  // namespace
}  // namespace baton
