// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/precision.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::ToleranceOf;
using test::Put;
using ::testing::HasSubstr;

Tensor Numbers(const Shape& shape, DType dtype, uint64_t seed) {
  return Put(::baton::testing::Numbers(shape, dtype, seed));
}
Tensor Zeros(const Shape& shape, DType dtype = DType::kF32) {
  return Put(Tensor::Zeros(shape, {.dtype = dtype}));
}

// Row-major [M, K] x [K, N].
std::vector<double> Product(const std::vector<double>& a,
                            const std::vector<double>& b, int64_t m, int64_t k,
                            int64_t n) {
  std::vector<double> c(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t t = 0; t < k; ++t) {
        c[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * k + t)] *
                                             b[static_cast<size_t>(t * n + j)];
      }
    }
  }
  return c;
}

std::vector<double> Doubles(const Tensor& tensor) {
  return tensor.To(DType::kF64).ToVector<double>();
}

void CheckMatrices(const Tensor& a, const Tensor& b, const std::string& what) {
  const int64_t m = a.dim(0), k = a.dim(1), n = b.dim(1);
  ExpectNear(Matmul(a, b), Shape({m, n}),
             Product(Doubles(a), Doubles(b), m, k, n), ToleranceOf(a.dtype()),
             what);
}

TEST(Matmul, EqualsTheSumOfProducts) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    for (int64_t m : {1, 3, 17}) {
      for (int64_t k : {1, 5, 64}) {
        for (int64_t n : {1, 4, 33}) {
          CheckMatrices(Numbers({m, k}, dtype, 1), Numbers({k, n}, dtype, 2),
                        Name(dtype));
        }
      }
    }
  }
}

TEST(Matmul, ReadsTransposedAndSlicedViews) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const Tensor a = Numbers({9, 7}, dtype, 1);   // [K + 2, M]
    const Tensor b = Numbers({5, 14}, dtype, 2);  // [N, 2 K]
    const Tensor left = a.Slice(0, 1, 8).Transpose(0, 1);
    CheckMatrices(left, b.Slice(1, 3, 10).Transpose(0, 1), "transposed");
    CheckMatrices(left, b.Slice(1, 0, 14, 2).Transpose(0, 1), "stepped");
    CheckMatrices(left.Slice(0, 2, 3), b.Slice(1, 0, 7).Transpose(0, 1),
                  "one row");
    CheckMatrices(left, b.Slice(1, 0, 7).Transpose(0, 1).Slice(1, 2, 3),
                  "one column");
    CheckMatrices(Numbers({1, 7}, dtype, 3).Expand({4, 7}),
                  Numbers({7, 2}, dtype, 4), "expanded");
  }
}

TEST(Matmul, BroadcastsLeadingAxes) {
  const Tensor a = Numbers({3, 1, 4, 5}, DType::kF32, 1);
  const Tensor b = Numbers({2, 5, 6}, DType::kF32, 2);
  const Tensor c = Matmul(a, b);
  ASSERT_EQ(c.shape(), Shape({3, 2, 4, 6}));
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      const Tensor left = a.Select(0, i).Select(0, 0);
      const Tensor right = b.Select(0, j);
      ExpectNear(c.Select(0, i).Select(0, j), Shape({4, 6}),
                 Product(Doubles(left), Doubles(right), 4, 5, 6), 1e-5,
                 "batch");
    }
  }
}

TEST(Matmul, MultipliesManySmallMatrices) {
  const Tensor a = Numbers({40, 8, 16}, DType::kF32, 1);
  const Tensor b = Numbers({40, 12, 16}, DType::kF32, 2).Transpose(1, 2);
  const Tensor c = Matmul(a, b);
  for (int64_t i = 0; i < 40; ++i) {
    ExpectNear(
        c.Select(0, i), Shape({8, 12}),
        Product(Doubles(a.Select(0, i)), Doubles(b.Select(0, i)), 8, 16, 12),
        1e-5, "matrix");
  }
}

// Batches whose strides no single step expresses, of two dims and of many.
TEST(Matmul, MultipliesPermutedBatches) {
  for (int64_t batch : {3, 9}) {
    const Tensor a = Numbers({batch, 5, 4, 8}, DType::kF32, 1);
    const Tensor b = Numbers({batch, 6, 4, 8}, DType::kF32, 2);
    const Tensor c = Matmul(a.Permute({0, 2, 1, 3}), b.Permute({0, 2, 3, 1}));
    ASSERT_EQ(c.shape(), Shape({batch, 4, 5, 6}));
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        const Tensor left = a.Select(0, i).Select(1, j);
        const Tensor right = b.Select(0, i).Select(1, j).Transpose(0, 1);
        ExpectNear(c.Select(0, i).Select(0, j), Shape({5, 6}),
                   Product(Doubles(left), Doubles(right), 5, 8, 6), 1e-5,
                   "permuted");
      }
    }
  }
}

TEST(Matmul, SharesOneMatrixAmongABatch) {
  const Tensor a = Numbers({7, 3, 8}, DType::kF32, 1);
  const Tensor b = Numbers({8, 6}, DType::kF32, 2);
  ExpectNear(Matmul(a, b), Shape({7, 3, 6}),
             Product(Doubles(a), Doubles(b), 21, 8, 6), 1e-5, "dense");
  const Tensor wide = Numbers({7, 3, 16}, DType::kF32, 3).Slice(2, 4, 12);
  ExpectNear(Matmul(wide, b), Shape({7, 3, 6}),
             Product(Doubles(wide), Doubles(b), 21, 8, 6), 1e-5, "sliced");
}

// TF32 rounds to ten bits; it is off unless asked for.
TEST(Matmul, StaysNearWithTf32) {
  const Tensor a = Numbers({96, 256}, DType::kF32, 1);
  const Tensor b = Numbers({256, 64}, DType::kF32, 2);
  const auto want = Product(Doubles(a), Doubles(b), 96, 256, 64);
  EXPECT_FALSE(Tf32Allowed());
  ExpectNear(Matmul(a, b), Shape({96, 64}), want, 2e-6, "f32");
  AllowTf32(true);
  ExpectNear(Matmul(a, b), Shape({96, 64}), want, 2e-3, "tf32");
  AllowTf32(false);
}

TEST(Matmul, TreatsEmptyAxesAsEmptySums) {
  EXPECT_EQ(Matmul(Zeros({0, 3}), Zeros({3, 2})).shape(), Shape({0, 2}));
  EXPECT_EQ(Matmul(Zeros({2, 0}), Zeros({0, 2})).ToVector<float>(),
            std::vector<float>(4, 0.0f));
  EXPECT_EQ(Matmul(Zeros({0, 2, 3}), Zeros({3, 2})).shape(), Shape({0, 2, 2}));
}

TEST(Matmul, NamesWhatDoesNotFit) {
  EXPECT_EQ(ErrorOf([] {
              Matmul(Zeros({2, 3}), Zeros({4, 5}));
            }),
            "[matmul] expected [..., M, K] x [..., K, N], got [2, 3] x [4, 5]");
  EXPECT_THAT(ErrorOf([] {
                Matmul(Zeros({3}), Zeros({3, 1}));
              }),
              HasSubstr("got [3] x [3, 1]"));
  EXPECT_THAT(ErrorOf([] {
                Matmul(Zeros({2, 2}), Zeros({2, 2}, DType::kF64));
              }),
              HasSubstr("one floating dtype, got f32 and f64"));
  EXPECT_THAT(ErrorOf([] {
                Matmul(Zeros({2, 2, 2}), Zeros({3, 2, 2}));
              }),
              HasSubstr("[matmul]"));
}

TEST(Linear, AddsTheBiasToEveryRow) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Tensor x = Numbers({2, 3, 8}, dtype, 1);
    const Tensor weight = Numbers({5, 8}, dtype, 2);
    const Tensor bias = Numbers({5}, dtype, 3);
    std::vector<double> expected =
        Product(Doubles(x), Doubles(weight.Transpose(0, 1)), 6, 8, 5);
    const Shape shape = {2, 3, 5};
    ExpectNear(Linear(x, weight, Tensor()), shape, expected, ToleranceOf(dtype),
               "without bias");
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += Doubles(bias)[i % 5];
    ExpectNear(Linear(x, weight, bias), shape, expected, ToleranceOf(dtype),
               "with bias");
    ExpectNear(Linear(x, weight.Transpose(0, 1).Clone().Transpose(0, 1), bias),
               shape, expected, ToleranceOf(dtype), "transposed weight");
  }
}

TEST(Linear, TakesAVectorAndAnEmptyBatch) {
  const Tensor weight = Numbers({2, 3}, DType::kF32, 1);
  EXPECT_EQ(Linear(Put(Tensor::Ones({3})), weight, Tensor()).shape(),
            Shape({2}));
  EXPECT_EQ(Linear(Zeros({0, 3}), weight, Tensor()).shape(), Shape({0, 2}));
}

TEST(Linear, NamesWhatDoesNotFit) {
  EXPECT_EQ(ErrorOf([] {
              Linear(Zeros({2, 3}), Zeros({5, 4}), Tensor());
            }),
            "[linear] expected weight [O, I] for x [..., I] [2, 3], got "
            "[5, 4]");
  EXPECT_THAT(ErrorOf([] {
                Linear(Zeros({2, 3}), Zeros({5, 3}), Zeros({4}));
              }),
              HasSubstr("expected bias [5], got [4]"));
}

}  // namespace
}  // namespace baton::ops
