// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/embedding_bag.h"

#include <gmock/gmock.h>

#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::test::ErrorOf;
using ::baton::test::Put;
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
}

}  // namespace
}  // namespace baton::autograd
