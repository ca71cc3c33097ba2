// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::Put;
using ::testing::ElementsAre;

// Of lines along `axis`, as one would by hand.
std::vector<double> Reference(const Tensor& x, int axis, bool reverse) {
  const Tensor lines = x.To(Device::Cpu()).To(DType::kF64).Transpose(axis, -1);
  std::vector<double> values = lines.ToVector<double>();
  const auto size = static_cast<size_t>(lines.dim(-1));
  for (size_t start = 0; start < values.size(); start += size) {
    double sum = 0;
    for (size_t k = 0; k < size; ++k) {
      double& value = values[start + (reverse ? size - 1 - k : k)];
      value = sum += value;
    }
  }
  return Tensor::From(values, lines.shape())
      .Transpose(axis, -1)
      .Contiguous()
      .ToVector<double>();
}

// Lines of a thread, of a block and of several; more lines than a side holds.
TEST(CumSum, AddsUpAlongEveryAxisInEveryDType) {
  for (const Shape& shape :
       {Shape({3, 70, 5}), Shape({2, 9000}), Shape({300, 131}), Shape({1}),
        Shape({5000, 40}), Shape({40, 5000}), Shape({2, 1, 33})}) {
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      const Tensor x = Put(testing::Numbers(shape, dtype, 3));
      for (int axis = -shape.rank(); axis < shape.rank(); ++axis) {
        for (bool reverse : {false, true}) {
          testing::ExpectNear(CumSum(x, axis, reverse), shape,
                              Reference(x, axis, reverse),
                              testing::ToleranceOf(dtype),
                              shape.ToString() + std::to_string(axis));
        }
      }
    }
  }
}

// Cut into chunks on a GPU.
TEST(CumSum, OfOneLongLine) {
  const Tensor ones = Put(Tensor::Ones({1, 1'000'003}));
  const auto y = CumSum(ones, 1).ToVector<float>();
  const auto back = CumSum(ones, 1, true).ToVector<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], static_cast<float>(i + 1));
    ASSERT_EQ(back[i], static_cast<float>(y.size() - i));
  }
  const Tensor x = Put(testing::Numbers({2, 400'000}, DType::kF64, 5));
  testing::ExpectNear(CumSum(x, 1), x.shape(), Reference(x, 1, false), 1e-11,
                      "two lines");
}

TEST(CumSum, OfIntegersAndBoolsIsI64AndWraps) {
  const Tensor y = CumSum(Put<uint8_t>({200, 100, 3}), 0);
  EXPECT_EQ(y.dtype(), DType::kI64);
  EXPECT_THAT(y.ToVector<int64_t>(), ElementsAre(200, 300, 303));
  EXPECT_THAT(CumSum(Put<bool>({true, false, true}), 0).ToVector<int64_t>(),
              ElementsAre(1, 1, 2));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(CumSum(Put<int64_t>({kMost, 1}), 0).ToVector<int64_t>(),
              ElementsAre(kMost, std::numeric_limits<int64_t>::min()));
}

TEST(CumSum, CarriesNaNOnAndNotBack) {
  const auto y = CumSum(Put<float>({1, NAN, 2, INFINITY}), 0).ToVector<float>();
  EXPECT_EQ(y[0], 1);
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST(CumSum, TakesViewsScalarsAndEmptyTensors) {
  const Tensor x = Put(Tensor::Arange(12, DType::kF32).Reshape({3, 4}));
  const Tensor view = x.Transpose(0, 1).Slice(0, 0, 4, 2);
  EXPECT_THAT(CumSum(view, 1).ToVector<float>(),
              ElementsAre(0, 4, 12, 2, 8, 18));
  EXPECT_THAT(CumSum(Put(Tensor::Ones({})).Expand({2}), 0).ToVector<float>(),
              ElementsAre(1, 2));
  EXPECT_EQ(CumSum(Put(Tensor::Scalar(3)), -1).Item(), 3);
  EXPECT_EQ(CumSum(Put(Tensor::Zeros({0, 3})), 0).shape(), Shape({0, 3}));
  EXPECT_EQ(CumSum(Put(Tensor::Zeros({2, 0})), 1).shape(), Shape({2, 0}));
  EXPECT_EQ(testing::ErrorOf([&] { CumSum(x, 2); }),
            "[cumsum] axis 2 is out of range for rank 2");
}

TEST(CumSum, HasTheSameBitsForAnyNumberOfThreads) {
  const Tensor x = Put(testing::Numbers({300, 700}, DType::kF32, 7));
  const int threads = ComputeThreads();
  SetComputeThreads(1);
  const Tensor alone = CumSum(x, 0);
  SetComputeThreads(4);
  EXPECT_TRUE(BitEqual(CumSum(x, 0), alone));
  SetComputeThreads(threads);
}

}  // namespace
}  // namespace baton::ops
