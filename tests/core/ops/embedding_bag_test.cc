// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/embedding_bag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using test::TestDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

constexpr int64_t kTableRows = 50;

// Bags of 0 to 12 rows.
struct Bags {
  std::vector<int64_t> index, offsets;
};
Bags MakeBags() {
  Bags bags;
  for (int64_t bag = 0; bag < 200; ++bag) {
    bags.offsets.push_back(static_cast<int64_t>(bags.index.size()));
    for (int64_t i = 0; i < bag * 7 % 13; ++i)
      bags.index.push_back((bag * 31 + i * i) % kTableRows);
  }
  return bags;
}

// Bag by bag, with ops of dense tensors in f64.
Tensor Expected(const Bags& bags, const Tensor& table, BagMode mode) {
  const Tensor wide = table.To(Device::Cpu()).To(DType::kF64);
  std::vector<Tensor> rows;
  for (size_t b = 0; b < bags.offsets.size(); ++b) {
    const auto begin = bags.index.begin() + bags.offsets[b];
    const auto end = b + 1 < bags.offsets.size()
                         ? bags.index.begin() + bags.offsets[b + 1]
                         : bags.index.end();
    if (begin == end) {
      rows.push_back(Tensor::Zeros({table.dim(1)}, {.dtype = DType::kF64}));
      continue;
    }
    const Tensor taken =
        Embedding(wide, Tensor::From(std::vector<int64_t>(begin, end)));
    rows.push_back(mode == BagMode::kSum    ? Sum(taken, {0})
                   : mode == BagMode::kMean ? Mean(taken, {0})
                                            : Max(taken, 0).values);
  }
  return Stack(rows, 0);
}

TEST(EmbeddingBag, AgreesWithTheDefinitionInEveryDTypeAndWidth) {
  const Bags bags = MakeBags();
  const Tensor index = Put(bags.index), offsets = Put(bags.offsets);
  for (const int64_t width : {1, 7, 64, 300}) {
    Generator generator(2);
    const Tensor random = RandNormal({kTableRows, width}, generator);
    for (const DType dtype :
         {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      const Tensor table = Put(random.To(dtype));
      const double tolerance = dtype == DType::kF64 ? 1e-12
                               : IsHalf(dtype)      ? 1e-2
                                                    : 1e-5;
      for (const BagMode mode :
           {BagMode::kSum, BagMode::kMean, BagMode::kMax}) {
        const auto result =
            EmbeddingBag(table, index, offsets, Tensor(), {.mode = mode});
        ASSERT_EQ(result.y.dtype(), dtype);
        EXPECT_TRUE(AllClose(result.y.To(Device::Cpu()).To(DType::kF64),
                             Expected(bags, table, mode), tolerance, tolerance))
            << Name(dtype) << " " << width;
      }
    }
  }
}

TEST(EmbeddingBag, IsTheSameForAnyNumberOfThreads) {
  const Bags bags = MakeBags();
  Generator generator(2);
  const Tensor table = RandNormal({kTableRows, 300}, generator);
  const int before = ComputeThreads();
  std::vector<Tensor> y;
  for (const int threads : {1, 3}) {
    SetComputeThreads(threads);
    y.push_back(EmbeddingBag(table, Tensor::From(bags.index),
                             Tensor::From(bags.offsets), Tensor(), {})
                    .y);
  }
  SetComputeThreads(before);
  EXPECT_TRUE(BitEqual(y[0], y[1]));
}

TEST(EmbeddingBag, TakesTheFirstOfEqualRowsAndKeepsNaN) {
  const float nan = std::nanf("");
  const Tensor table = Put<float>({1, nan, 2, 5, 2, 7}, {3, 2});
  const auto result = EmbeddingBag(table, Put<int64_t>({0, 2, 1, 2}, {1, 4}),
                                   Tensor(), Tensor(), {.mode = BagMode::kMax});
  EXPECT_THAT(result.y.ToVector<float>(), ElementsAre(2, IsNan()));
  EXPECT_THAT(result.rows.ToVector<int64_t>(), ElementsAre(2, 0));
}

TEST(EmbeddingBag, OfBadIndicesIsAnErrorOrOnAGpuNaNAndSendsNothing) {
  const Tensor table = Put(Tensor::Ones({3, 2}));
  const Tensor index = Put<int64_t>({0, 7, 1, -3, 2, 2}, {3, 2});
  if (TestDevice().is_cpu()) {
    EXPECT_THAT(
        ErrorOf([&] { EmbeddingBag(table, index, Tensor(), Tensor(), {}); }),
        HasSubstr("index 7 (element 1) is outside [0, 3)"));
    return;
  }
  const auto result =
      EmbeddingBag(table, index, Tensor(), Tensor(), {.mode = BagMode::kSum});
  EXPECT_THAT(result.y.ToVector<float>(),
              ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), 2, 2));
  const Tensor grad =
      EmbeddingBagBackward(Put(Tensor::Ones({3, 2})), index, Tensor(), result,
                           3, {.mode = BagMode::kSum});
  EXPECT_THAT(grad.ToVector<float>(), ElementsAre(1, 1, 1, 1, 2, 2));
  // Offsets that descend or reach too far take no rows from outside.
  const auto odd =
      EmbeddingBag(table, Put<int64_t>({0, 1}), Put<int64_t>({0, 9, -4}),
                   Tensor(), {.mode = BagMode::kSum});
  EXPECT_THAT(odd.y.ToVector<float>(), ElementsAre(2, 2, 0, 0, 2, 2));
}

}  // namespace
}  // namespace baton::ops
