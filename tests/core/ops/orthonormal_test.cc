// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/orthonormal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using ::baton::test::Put;
using ::baton::testing::ErrorOf;
using ::baton::testing::Numbers;
using ::testing::HasSubstr;

Tensor Gram(const Tensor& matrix) {
  return Matmul(matrix.Transpose(0, 1), matrix);
}

Tensor Identity(int64_t size, DType dtype) {
  const Tensor identity = Tensor::Zeros({size, size}, {.dtype = dtype});
  for (int64_t i = 0; i < size; ++i) identity.Select(0, i).Select(0, i).Fill(1);
  return Put(identity);
}

TEST(OrthonormaliseColumns, SpansWhatTheColumnsDid) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {5, 5}, {1000, 4}, {2049, 7}}) {
      const Tensor matrix = Put(Numbers({rows, columns}, dtype, 1));
      const Tensor before = matrix.Clone();
      const uint64_t version = matrix.version();
      OrthonormaliseColumns(matrix);
      EXPECT_GT(matrix.version(), version);
      const double tolerance = dtype == DType::kF32 ? 1e-4 : 1e-11;
      EXPECT_TRUE(
          AllClose(Gram(matrix), Identity(columns, dtype), 0, tolerance));
      // What was there is what of it lies along the new columns.
      const Tensor along = Matmul(matrix.Transpose(0, 1), before);
      EXPECT_TRUE(AllClose(Matmul(matrix, along), before, 0, tolerance));
    }
  }
}

TEST(OrthonormaliseColumns, OfNearlyTheSameColumnsAreOrthonormal) {
  const Tensor matrix = Put(Numbers({300, 3}, DType::kF64, 2));
  for (int64_t j = 1; j < 3; ++j) {
    const Tensor other = MulScalar(matrix.Select(1, j), 1e-4);
    matrix.Select(1, j).CopyFrom(Add(matrix.Select(1, 0), other));
  }
  OrthonormaliseColumns(matrix);
  EXPECT_TRUE(AllClose(Gram(matrix), Identity(3, DType::kF64), 0, 1e-11));
}

TEST(OrthonormaliseColumns, LeavesZerosOfWhatDependsOnOthers) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Tensor matrix = Put(Numbers({64, 4}, dtype, 3));
    matrix.Select(1, 1).Fill(0);
    matrix.Select(1, 2).CopyFrom(MulScalar(matrix.Select(1, 0), -3));
    OrthonormaliseColumns(matrix);
    const Tensor expected = Identity(4, dtype);
    for (const int64_t zero : {1, 2}) expected.Select(0, zero).Fill(0);
    EXPECT_TRUE(AllClose(Gram(matrix), expected, 0, 1e-5));
  }
}

TEST(OrthonormaliseColumns, DoesNotHideWhatIsNoNumber) {
  for (const double bad : {std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    const Tensor matrix = Put(Numbers({8, 2}, DType::kF32, 4));
    matrix.Select(0, 5).Select(0, 0).Fill(bad);
    OrthonormaliseColumns(matrix);
    EXPECT_TRUE(std::isnan(matrix.Select(0, 0).Select(0, 0).Item()));
  }
}

TEST(OrthonormaliseColumns, RefusesWhatIsNoMatrix) {
  for (const Tensor& wrong :
       {Put(Tensor::Ones({3})), Put(Tensor::Ones({3, 2})).Transpose(0, 1),
        Put(Tensor::Ones({3, 2})).To(DType::kBF16)}) {
    EXPECT_THAT(ErrorOf([&] { OrthonormaliseColumns(wrong); }),
                HasSubstr("[orthonormalise_columns] expected a contiguous"));
  }
  OrthonormaliseColumns(Put(Tensor::Ones({0, 2})));
}

}  // namespace
}  // namespace baton::ops
