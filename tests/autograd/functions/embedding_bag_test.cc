// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/embedding_bag.h"

#include <gmock/gmock.h>

#include "core/ops/arithmetic.h"
#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::test::ErrorOf;
using ::baton::test::Put;
using ::baton::test::TestDevice;
using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Inputs = const std::vector<Variable>&;

constexpr ops::BagMode kSum = ops::BagMode::kSum, kMax = ops::BagMode::kMax;

Tensor Index() { return Put<int64_t>({4, 0, 4, 1, 2, 2, 0}); }
Tensor Offsets() { return Put<int64_t>({0, 3, 3, 5}); }

TEST(EmbeddingBagGradients, OfMeans) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return EmbeddingBag(v[0], Index(), Offsets()); },
                {Random({5, 3})}));
}

TEST(EmbeddingBagGradients, OfWeightedSums) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return EmbeddingBag(v[0], Index(), Offsets(), v[1],
                            {.mode = kSum, .padding_index = 2});
      },
      {Random({5, 3}), Random({7})}));
}

TEST(EmbeddingBagGradients, OfTheGreatest) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return EmbeddingBag(v[0], Index(), Offsets(), Variable(),
                            {.mode = kMax});
      },
      {Random({5, 3})}));
}

TEST(EmbeddingBagGradients, OfBagsOfEquallyMany) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return EmbeddingBag(v[0], Index().Slice(0, 0, 6).Reshape({2, 3}),
                            Tensor(), v[1], {.mode = kSum});
      },
      {Random({5, 3}), Random({2, 3})}));
}

// What a leaf gets; rows in the order of their numbers on the CPU.
TEST(EmbeddingBagGradients, MayBeTheRowsThatWereLookedUp) {
  const auto gradient = [](ops::EmbeddingBagOptions options, bool sparse,
                           const Variable& weights) {
    options.sparse = sparse;
    const Variable table(
        Put(Tensor::Arange(18).To(DType::kF32).Reshape({6, 3})), true);
    EmbeddingBag(table, Index(), Offsets(), weights, options)
        .Backward(Put(Tensor::Arange(12).To(DType::kF32).Reshape({4, 3})));
    return table.gradient();
  };
  for (const bool weighted : {false, true}) {
    const Variable weights =
        weighted ? Variable(Put<float>({1, 2, -3, 4, 5, 6, 7}), true)
                 : Variable();
    for (const ops::EmbeddingBagOptions& options :
         {ops::EmbeddingBagOptions{.mode = kSum},
          ops::EmbeddingBagOptions{.mode = kSum, .padding_index = 2},
          ops::EmbeddingBagOptions{.padding_index = 4}}) {
      if (weighted && options.mode != kSum) continue;
      const Gradient rows = gradient(options, true, weights);
      const Gradient dense = gradient(options, false, weights);
      ASSERT_TRUE(rows.is_rows());
      EXPECT_FALSE(dense.is_rows());
      EXPECT_TRUE(ops::AllClose(rows.Dense(), dense.Dense(), 1e-6, 1e-6));
      if (options.padding_index != 2 || TestDevice().is_cuda()) continue;
      EXPECT_THAT(rows.index().ToVector<int64_t>(), ElementsAre(0, 1, 4));
    }
  }
}

TEST(EmbeddingBag, OfHalfPrecisionSumsInF32) {
  // 300 ones: bf16 counts in twos behind 256.
  const Variable table(Put(Tensor::Ones({1, 2}).To(DType::kBF16)));
  const Tensor index = Put(Tensor::Zeros({1, 300}, {.dtype = DType::kI64}));
  const Variable y =
      EmbeddingBag(table, index, Tensor(), Variable(), {.mode = kSum});
  EXPECT_THAT(y.tensor().To(DType::kF32).ToVector<float>(),
              ElementsAre(300, 300));
}

TEST(EmbeddingBag, WithoutIndicesIsZeroAndHasNoGradient) {
  for (const auto mode : {kSum, ops::BagMode::kMean, kMax}) {
    const Variable table(Put(Tensor::Ones({2, 2})), true);
    const Variable y =
        EmbeddingBag(table, Put(Tensor::Zeros({0}, {.dtype = DType::kI64})),
                     Put<int64_t>({0, 0}), Variable(), {.mode = mode});
    EXPECT_THAT(y.tensor().ToVector<float>(), ElementsAre(0, 0, 0, 0));
    y.Backward(Put(Tensor::Ones({2, 2})));
    EXPECT_THAT(table.grad().ToVector<float>(), ElementsAre(0, 0, 0, 0));
    if (mode == kMax) continue;
    const Variable sparse(table.tensor(), true);
    EmbeddingBag(sparse, Put(Tensor::Zeros({0}, {.dtype = DType::kI64})),
                 Put<int64_t>({0, 0}), Variable(),
                 {.mode = mode, .sparse = true})
        .Backward(Put(Tensor::Ones({2, 2})));
    EXPECT_EQ(sparse.gradient().index().numel(), 0);
  }
}

TEST(EmbeddingBag, NamesWhatDoesNotFit) {
  const Variable table(Tensor::Ones({3, 2}));
  const Tensor index = Tensor::From<int64_t>({0, 1, 2});
  const auto error = [&](const Tensor& i, const Tensor& offsets,
                         const ops::EmbeddingBagOptions& options = {}) {
    return ErrorOf(
        [&] { EmbeddingBag(table, i, offsets, Variable(), options); });
  };
  EXPECT_THAT(error(index, Tensor()), HasSubstr("[B, n]"));
  EXPECT_THAT(error(index, Tensor::From<int64_t>({1})),
              HasSubstr("a first offset of 0"));
  EXPECT_THAT(error(index, Tensor::From<int64_t>({0, 2, 1})),
              HasSubstr("offsets that ascend"));
  EXPECT_THAT(error(index, Tensor::From<int64_t>({0, 2}),
                    {.include_last_offset = true}),
              HasSubstr("a last offset of 3"));
  EXPECT_THAT(error(Tensor::From<int64_t>({3}), Tensor::From<int64_t>({0})),
              HasSubstr("outside [0, 3)"));
  EXPECT_THAT(ErrorOf([&] {
                EmbeddingBag(table, index, Tensor::From<int64_t>({0}),
                             Tensor::Ones({3}));
              }),
              HasSubstr("weights of sums alone"));
  EXPECT_THAT(
      error(index, Tensor::From<int64_t>({0}), {.mode = kMax, .sparse = true}),
      HasSubstr("sparse gradients of sums and means alone"));
}

}  // namespace
}  // namespace baton::autograd
