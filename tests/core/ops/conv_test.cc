// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/conv_tuning.h"
#include "core/parallel.h"
#include "core/precision.h"
#include "tests/core/ops/conv_cases.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using ::baton::testing::Array4;
using ::baton::testing::CheckConv;
using ::baton::testing::ConvCase;
using ::baton::testing::ConvCases;
using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::Numbers;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Tensor OnDevice(const Shape& shape, DType dtype, uint64_t seed,
                MemoryFormat format = MemoryFormat::kContiguous) {
  return test::Put(Numbers(shape, dtype, seed, format));
}

// A search for each of the many cases would take long on a GPU; that it finds
// equal results is conv_tuning_test.cc's.
class Conv2dCases : public ::testing::Test {
 protected:
  Conv2dCases() { SetConvSearch(false); }
  ~Conv2dCases() override { SetConvSearch(true); }
};

TEST_F(Conv2dCases, EqualTheSumOfProductsInF32) {
  for (const ConvCase& c : ConvCases()) {
    CheckConv(c, DType::kF32, MemoryFormat::kContiguous, false);
    CheckConv(c, DType::kF32, MemoryFormat::kChannelsLast, false);
    CheckConv(c, DType::kF32, MemoryFormat::kChannelsLast, true);
  }
}

TEST_F(Conv2dCases, EqualTheSumOfProductsInF64) {
  for (const ConvCase& c : ConvCases()) {
    CheckConv(c, DType::kF64, MemoryFormat::kContiguous, false);
    CheckConv(c, DType::kF64, MemoryFormat::kChannelsLast, true);
  }
}

TEST_F(Conv2dCases, SmallFloatsAreSummedInF32) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (const ConvCase& c : ConvCases()) {
      CheckConv(c, dtype, MemoryFormat::kChannelsLast, false);
      CheckConv(c, dtype, MemoryFormat::kChannelsLast, true);
    }
  }
}

TEST_F(Conv2dCases, ViewsThatBeginAtAnOddElementAreRead) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const Shape shape = {2, 8, 6, 6};
    const Tensor flat = OnDevice({2 * 8 * 6 * 6 + 1}, dtype, 1);
    const Tensor view = Tensor::FromStorage(flat.storage(), dtype, shape,
                                            ContiguousStrides(shape), 1);
    const Tensor weight = OnDevice({4, 8, 3, 3}, dtype, 2);
    EXPECT_EQ(view.IsContiguous(), true);
    ExpectNear(Conv2d(view, weight, Tensor(), {}),
               Array4(Conv2d(view.Clone(), weight, Tensor(), {})),
               testing::ToleranceOf(dtype), Name(dtype));
  }
}

TEST(Conv2d, GradientsOfWeightsLieInTheOrderAskedFor) {
  const Shape shape = {6, 4, 3, 3};
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    const Tensor x = OnDevice({2, 4, 7, 7}, DType::kF32, 1, format);
    const Tensor dy = OnDevice({2, 6, 5, 5}, DType::kF32, 2, format);
    const Tensor dense = Conv2dBackwardWeight(dy, x, shape, {});
    EXPECT_EQ(dense.strides(), ContiguousStrides(shape));
    const Tensor last =
        Conv2dBackwardWeight(dy, x, shape, {}, MemoryFormat::kChannelsLast);
    EXPECT_EQ(last.SuggestFormat(), MemoryFormat::kChannelsLast);
    ExpectNear(last, Array4(dense), 1e-5, "channels-last gradient");
    const Tensor empty =
        Conv2dBackwardWeight(dy.Slice(0, 0, 0), x.Slice(0, 0, 0), shape, {},
                             MemoryFormat::kChannelsLast);
    EXPECT_EQ(empty.SuggestFormat(), MemoryFormat::kChannelsLast);
    EXPECT_EQ(empty.device(), x.device());
  }
}

TEST(Conv2d, AddsTheGradientOfItsInputToASum) {
  constexpr MemoryFormat kLast = MemoryFormat::kChannelsLast;
  const Shape x = {2, 8, 9, 9};
  const Conv2dOptions options = {.stride = {2, 2}, .padding = {1, 1}};
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    for (MemoryFormat format : {MemoryFormat::kContiguous, kLast}) {
      const Tensor dy = OnDevice({2, 16, 5, 5}, dtype, 1, format);
      const Tensor weight = OnDevice({16, 8, 3, 3}, dtype, 2, format);
      const Tensor sum = OnDevice(x, dtype, 3, format);
      Array4 expected(sum);
      const Array4 added(Conv2dBackwardInput(dy, weight, x, options));
      for (size_t i = 0; i < expected.values.size(); ++i)
        expected.values[i] += added.values[i];
      const uint64_t version = sum.version();
      Conv2dAddBackwardInput(sum, dy, weight, options);
      ExpectNear(sum, expected, testing::ToleranceOf(dtype), Name(dtype));
      EXPECT_GT(sum.version(), version);
    }
  }
  EXPECT_THAT(ErrorOf([&] {
                Conv2dAddBackwardInput(OnDevice({2, 8, 8, 9}, DType::kF32, 1),
                                       OnDevice({2, 16, 5, 5}, DType::kF32, 1),
                                       OnDevice({16, 8, 3, 3}, DType::kF32, 1),
                                       options);
              }),
              StartsWith("[conv2d_backward_input]"));
}

TEST(Conv2d, BiasIsOptional) {
  const Tensor x = OnDevice({1, 4, 5, 5}, DType::kF32, 1);
  const Tensor weight = OnDevice({3, 4, 3, 3}, DType::kF32, 2);
  const Tensor plain = Conv2d(x, weight, Tensor(), {});
  const Tensor zero = Conv2d(x, weight, test::Put(Tensor::Zeros({3})), {});
  ExpectNear(plain, Array4(zero), 1e-6, "without bias");
}

TEST(Conv2d, ReadsViews) {
  const Tensor x = OnDevice({4, 6, 8, 8}, DType::kF32, 1);
  const Tensor weight = OnDevice({3, 4, 3, 3}, DType::kF32, 2);
  const Tensor view = x.Slice(1, 1, 5).Transpose(2, 3);
  ExpectNear(Conv2d(view, weight, Tensor(), {}),
             Array4(Conv2d(view.Clone().Contiguous(), weight, Tensor(), {})),
             1e-6, "view");
}

TEST(Conv2d, SeesWeightsWrittenInPlace) {
  const Tensor x =
      OnDevice({2, 16, 6, 6}, DType::kF32, 1, MemoryFormat::kChannelsLast);
  const Tensor weight = OnDevice({16, 16, 3, 3}, DType::kF32, 2);
  const Tensor other = OnDevice({16, 16, 3, 3}, DType::kF32, 3);
  Conv2d(x, weight, Tensor(), {});
  weight.CopyFrom(other);
  EXPECT_EQ(Conv2d(x, weight, Tensor(), {}).ToVector<float>(),
            Conv2d(x, other, Tensor(), {}).ToVector<float>());
}

TEST(Conv2d, GivesTheSameBitsEveryTimeAndOnEveryThread) {
  SetDeterministic(true);
  const Conv2dOptions options = {.padding = {1, 1}};
  const Tensor x =
      OnDevice({6, 32, 14, 14}, DType::kF32, 1, MemoryFormat::kChannelsLast);
  const Tensor weight = OnDevice({32, 32, 3, 3}, DType::kF32, 2);
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
  SetDeterministic(false);
}

TEST(Conv2d, WorksForEachNumberOfThreads) {
  const int before = ComputeThreads();
  for (int threads : {1, 2, 3, 1}) {
    SetComputeThreads(threads);
    CheckConv(ConvCases()[2], DType::kF32, MemoryFormat::kChannelsLast, false);
  }
  SetComputeThreads(before);
}

TEST(Conv2d, AnEmptyBatchGivesEmptyResultsAndZeroGradients) {
  const Shape weight_shape = {3, 4, 3, 3};
  const Tensor x = test::Put(Tensor::Zeros({0, 4, 8, 8}));
  const Tensor weight = OnDevice(weight_shape, DType::kF32, 1);
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
