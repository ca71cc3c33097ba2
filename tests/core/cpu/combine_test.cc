// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/combine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/tensor.h"

namespace baton::cpu {
namespace {

Tensor Values(DType dtype, uint64_t seed) {
  Generator generator(seed);
  return RandUniform({1003}, -4, 4, generator).To(dtype);
}

class CombineTest : public ::testing::TestWithParam<DType> {};

TEST_P(CombineTest, GivesWhatTheOpGivesOnceOrTwice) {
  const Tensor a = Values(GetParam(), 1), b = Values(GetParam(), 2);
  const Tensor out = Tensor::ZerosLike(a), copy = Tensor::ZerosLike(a);
  for (const auto& [op, expected] :
       {std::pair{BinaryOp::kAdd, ops::Add(a, b)},
        {BinaryOp::kMul, ops::Mul(a, b)},
        {BinaryOp::kMaximum, ops::Maximum(a, b)},
        {BinaryOp::kMinimum, ops::Minimum(a, b)}}) {
    Combine(op, a.dtype(), a.numel(), a.raw_data(), b.raw_data(), 1,
            out.raw_data(), nullptr);
    EXPECT_EQ(std::memcmp(out.raw_data(), expected.raw_data(), out.nbytes()),
              0);
    Combine(op, a.dtype(), a.numel(), a.raw_data(), b.raw_data(), 1,
            out.raw_data(), copy.raw_data());
    EXPECT_EQ(std::memcmp(out.raw_data(), expected.raw_data(), out.nbytes()),
              0);
    EXPECT_EQ(std::memcmp(copy.raw_data(), expected.raw_data(), out.nbytes()),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, CombineTest,
                         ::testing::Values(DType::kF32, DType::kF64,
                                           DType::kF16, DType::kBF16,
                                           DType::kI32, DType::kI64));

TEST(Combine, ScalesASumAndRoundsItOnce) {
  const Tensor a = Tensor::From<float>({1}).To(DType::kBF16);
  const Tensor b = Tensor::From<float>({0.00390625f}).To(DType::kBF16);
  Combine(BinaryOp::kAdd, DType::kBF16, 1, a.raw_data(), b.raw_data(), 1.5,
          a.raw_data(), nullptr);
  // The sum alone would be rounded to 1.
  EXPECT_EQ(a.To(DType::kF32).ToVector<float>(), (std::vector{1.5078125f}));
}

}  // namespace
}  // namespace baton::cpu
