// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/indexing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/error_of.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Indexing, CatJoinsViewsAlongAnyAxis) {
  const Tensor x = Tensor::Arange(6, DType::kI32).Reshape({2, 3});
  const Tensor y = Tensor::Arange(4, DType::kI32).Reshape({2, 2});
  EXPECT_THAT(Cat({x, y}, 1).ToVector<int32_t>(),
              ElementsAre(0, 1, 2, 0, 1, 3, 4, 5, 2, 3));
  EXPECT_THAT(Cat({x.Transpose(0, 1), y}, 0).ToVector<int32_t>(),
              ElementsAre(0, 3, 1, 4, 2, 5, 0, 1, 2, 3));
  EXPECT_EQ(Cat({x, Tensor::Zeros({0, 3}, {.dtype = DType::kI32})}, 0).shape(),
            Shape({2, 3}));
  const Tensor image =
      Tensor::Ones({1, 3, 2, 2}).Contiguous(MemoryFormat::kChannelsLast);
  EXPECT_EQ(Cat({image, image}, 0).SuggestFormat(),
            MemoryFormat::kChannelsLast);
  EXPECT_THAT(ErrorOf([&] { Cat({x, y}, 0); }), StartsWith("[cat] shapes"));
  EXPECT_THAT(ErrorOf([&] { Cat({}, 0); }), StartsWith("[cat]"));
  EXPECT_THAT(ErrorOf([&] {
                Cat({x, y.To(DType::kF32)}, 1);
              }),
              StartsWith("[cat]"));
}

TEST(Indexing, StackAddsAnAxis) {
  const Tensor x = Tensor::From<float>({1, 2});
  EXPECT_THAT(Stack({x, Neg(x)}, -1).ToVector<float>(),
              ElementsAre(1, -1, 2, -2));
  EXPECT_EQ(Stack({x, x, x}, 0).shape(), Shape({3, 2}));
  EXPECT_THAT(ErrorOf([&] {
                Stack({x, Tensor::Ones({3})}, 0);
              }),
              StartsWith("[stack]"));
}

TEST(Indexing, GatherAndScatterAreInverse) {
  const Tensor x = Tensor::From<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor index = Tensor::From<int64_t>({2, 0, 1, 1, 2, 0}, {2, 3});
  const Tensor taken = Gather(x, 1, index);
  EXPECT_THAT(taken.ToVector<float>(), ElementsAre(3, 1, 2, 5, 6, 4));
  EXPECT_TRUE(BitEqual(Scatter(Tensor::Zeros({2, 3}), 1, index, taken), x));
  EXPECT_THAT(
      Gather(x, 0, Tensor::From<int64_t>({1, 0}, {1, 2})).ToVector<float>(),
      ElementsAre(4, 2));
}

TEST(Indexing, ScatterAddSumsWhatMeets) {
  const Tensor index = Tensor::From<int64_t>({0, 0, 2}, {3, 1});
  const Tensor source = Tensor::From<float>({1, 2, 4}, {3, 1});
  const Tensor x = Tensor::Ones({3, 1});
  EXPECT_THAT(ScatterAdd(x, 0, index, source).ToVector<float>(),
              ElementsAre(4, 1, 5));
  EXPECT_THAT(Scatter(x, 0, index, source).ToVector<float>(),
              ElementsAre(2, 1, 4));
  EXPECT_THAT(x.ToVector<float>(), ElementsAre(1, 1, 1));
}

TEST(Indexing, BadIndicesAreNamed) {
  const Tensor x = Tensor::Ones({2, 3});
  const Tensor bad = Tensor::From<int64_t>({0, 7, 9}, {1, 3});
  EXPECT_EQ(ErrorOf([&] { Gather(x, 1, bad); }),
            "[gather] index 7 (element 1) is outside [0, 3)");
  EXPECT_THAT(ErrorOf([&] {
                ScatterAdd(x, 1, bad, Tensor::Ones({1, 3}));
              }),
              StartsWith("[scatter_add] index 7"));
  EXPECT_THAT(ErrorOf([&] { Embedding(x, Tensor::From<int64_t>({-1})); }),
              StartsWith("[embedding] index -1"));
  EXPECT_THAT(ErrorOf([&] { Gather(x, 0, Tensor::Arange(2)); }),
              HasSubstr("rank"));
  EXPECT_THAT(ErrorOf([&] { OneHot(Tensor::From<int64_t>({3}), 3); }),
              StartsWith("[one_hot]"));
}

TEST(Indexing, EmbeddingTakesRowsAndSumsGradients) {
  const Tensor table = Tensor::From<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor index = Tensor::From<int64_t>({2, 0, 2}, {3, 1});
  const Tensor y = Embedding(table, index);
  EXPECT_EQ(y.shape(), Shape({3, 1, 2}));
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(5, 6, 1, 2, 5, 6));
  EXPECT_THAT(EmbeddingBackward(y, index, 3).ToVector<float>(),
              ElementsAre(1, 2, 0, 0, 10, 12));
}

TEST(Indexing, GradientsAreEqualForAnyNumberOfThreads) {
  Generator generator(4);
  const Tensor index = RandInt(0, 500, {20'000}, generator);
  const Tensor dy = RandNormal({20'000, 33}, generator);
  const int threads = ComputeThreads();
  SetComputeThreads(1);
  const Tensor one = EmbeddingBackward(dy, index, 500);
  SetComputeThreads(5);
  EXPECT_TRUE(BitEqual(EmbeddingBackward(dy, index, 500), one));
  SetComputeThreads(threads);
}

TEST(Indexing, OneHotMarksTheLabel) {
  EXPECT_THAT(OneHot(Tensor::From<int64_t>({1, 0}), 2).ToVector<float>(),
              ElementsAre(0, 1, 1, 0));
}

}  // namespace
}  // namespace baton::ops
