// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/sort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Positions of `line`'s elements in order, by the C++ library's stable sort.
std::vector<int64_t> Reference(const std::vector<double>& line,
                               bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double x = line[static_cast<size_t>(descending ? b : a)];
    const double y = line[static_cast<size_t>(descending ? a : b)];
    return std::isnan(y) ? !std::isnan(x) : x < y;
  });
  return order;
}

void ExpectOrdered(const Tensor& x, const ValuesAndIndices& got, int axis,
                   int64_t count, bool descending, const std::string& what) {
  const Tensor lines = x.To(DType::kF64).Transpose(axis, -1).Contiguous();
  const Tensor indices = got.indices.Transpose(axis, -1).Contiguous();
  const Tensor values =
      got.values.To(DType::kF64).Transpose(axis, -1).Contiguous();
  ASSERT_EQ(values.dim(-1), count) << what;
  ASSERT_EQ(indices.shape(), values.shape()) << what;
  const auto from = lines.ToVector<double>(), to = values.ToVector<double>();
  const auto at = indices.ToVector<int64_t>();
  const auto size = static_cast<size_t>(lines.dim(-1));
  const auto kept = static_cast<size_t>(count);
  for (size_t i = 0; i < from.size() / size; ++i) {
    const auto start = from.begin() + static_cast<int64_t>(i * size);
    const std::vector<double> line(start, start + static_cast<int64_t>(size));
    const std::vector<int64_t> order = Reference(line, descending);
    for (size_t k = 0; k < kept; ++k) {
      ASSERT_EQ(at[i * kept + k], order[k]) << what << " line " << i;
      const double value = line[static_cast<size_t>(order[k])];
      const double taken = to[i * kept + k];
      ASSERT_TRUE(taken == value || (std::isnan(taken) && std::isnan(value)));
    }
  }
}

// Few different values, so that there are ties, and NaN of both signs.
TEST(Sort, IsStableAlongEveryAxisInEveryDType) {
  Generator generator(5);
  for (const Shape& shape : {Shape({3, 70, 5}), Shape({4, 3000}), Shape({7}),
                             Shape({2000, 3}), Shape({1, 1})}) {
    const Tensor numbers = RandInt(0, 100, shape, generator);
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
                        DType::kI32, DType::kI64, DType::kU8, DType::kBool}) {
      Tensor x = numbers.To(dtype);
      if (dtype != DType::kU8 && dtype != DType::kBool) {
        Tensor low = numbers.Clone().To(DType::kF64);
        for (int64_t i = 0; i < low.numel(); ++i) {
          double& value = low.data<double>()[i];
          value -= 50;
          if (value == 7) value = NAN;
          if (value == -7) value = -std::numeric_limits<double>::quiet_NaN();
        }
        x = low.To(dtype);
      }
      x = Put(x);
      for (int axis = -shape.rank(); axis < shape.rank(); ++axis) {
        for (bool descending : {false, true}) {
          const std::string what = std::string(Name(dtype)) + shape.ToString() +
                                   " axis " + std::to_string(axis);
          const int64_t size = x.dim(axis);
          ExpectOrdered(x, Sort(x, axis, descending), axis, size, descending,
                        what);
          ExpectOrdered(x, TopK(x, (size + 1) / 2, axis, descending), axis,
                        (size + 1) / 2, descending, what + " half");
        }
      }
    }
  }
}

TEST(Sort, PutsNaNLastAndZerosOfBothSignsTogether) {
  const Tensor x = Put<float>({0.f, -NAN, kInf, -0.f, -kInf, NAN, -1e-40f});
  EXPECT_THAT(ArgSort(x).ToVector<int64_t>(), ElementsAre(4, 6, 0, 3, 2, 1, 5));
  EXPECT_THAT(ArgSort(x, 0, true).ToVector<int64_t>(),
              ElementsAre(1, 5, 2, 0, 3, 6, 4));
  EXPECT_THAT(TopK(x, 3).indices.ToVector<int64_t>(), ElementsAre(1, 5, 2));
  EXPECT_THAT(TopK(x, 2, 0, false).indices.ToVector<int64_t>(),
              ElementsAre(4, 6));
  EXPECT_TRUE(std::signbit(Sort(x).values.ToVector<float>()[3]));
}

TEST(Sort, TellsTheEndsOfIntegersApart) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Tensor x = Put<int64_t>({kMost, 0, kLeast, -1, kMost - 1});
  EXPECT_THAT(Sort(x).values.ToVector<int64_t>(),
              ElementsAre(kLeast, -1, 0, kMost - 1, kMost));
  EXPECT_THAT(ArgSort(x, -1, true).ToVector<int64_t>(),
              ElementsAre(0, 4, 1, 3, 2));
}

TEST(Sort, TakesScalarsAndEmptyTensors) {
  const auto [value, index] = Sort(Put(Tensor::Scalar(4)));
  EXPECT_EQ(value.shape(), Shape());
  EXPECT_EQ(value.Item(), 4);
  EXPECT_EQ(index.Item(), 0);
  EXPECT_EQ(Sort(Put(Tensor::Zeros({0, 3})), 0).values.shape(), Shape({0, 3}));
  EXPECT_EQ(Sort(Put(Tensor::Zeros({2, 0}))).indices.shape(), Shape({2, 0}));
  const Tensor x = Put(Tensor::Zeros({2, 3}));
  EXPECT_EQ(TopK(x, 0).values.shape(), Shape({2, 0}));
  EXPECT_EQ(TopK(x, 2, 0).values.shape(), Shape({2, 3}));
}

TEST(Sort, WrongArgumentsAreNamed) {
  const Tensor x = Put(Tensor::Zeros({2, 3}));
  EXPECT_EQ(ErrorOf([&] { TopK(x, 4); }),
            "[top_k] k 4 is more than axis -1 of [2, 3] has");
  EXPECT_EQ(ErrorOf([&] { TopK(x, -1); }), "[top_k] expected k >= 0, got -1");
  EXPECT_EQ(ErrorOf([&] { Sort(x, 2); }),
            "[sort] axis 2 is out of range for rank 2");
}

}  // namespace
}  // namespace baton::ops
