// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/indexing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "core/ops/arithmetic.h"
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
using ::testing::StartsWith;

TEST(Indexing, CatJoinsViewsAlongAnyAxis) {
  const Tensor x = Put(Tensor::Arange(6, DType::kI32).Reshape({2, 3}));
  const Tensor y = Put(Tensor::Arange(4, DType::kI32).Reshape({2, 2}));
  EXPECT_THAT(Cat({x, y}, 1).ToVector<int32_t>(),
              ElementsAre(0, 1, 2, 0, 1, 3, 4, 5, 2, 3));
  EXPECT_THAT(Cat({x.Transpose(0, 1), y}, 0).ToVector<int32_t>(),
              ElementsAre(0, 3, 1, 4, 2, 5, 0, 1, 2, 3));
  EXPECT_EQ(
      Cat({x, Put(Tensor::Zeros({0, 3}, {.dtype = DType::kI32}))}, 0).shape(),
      Shape({2, 3}));
  const Tensor image =
      Put(Tensor::Ones({1, 3, 2, 2})).Contiguous(MemoryFormat::kChannelsLast);
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
  const Tensor x = Put<float>({1, 2});
  EXPECT_THAT(Stack({x, Neg(x)}, -1).ToVector<float>(),
              ElementsAre(1, -1, 2, -2));
  EXPECT_EQ(Stack({x, x, x}, 0).shape(), Shape({3, 2}));
  EXPECT_THAT(ErrorOf([&] {
                Stack({x, Put(Tensor::Ones({3}))}, 0);
              }),
              StartsWith("[stack]"));
}

TEST(Indexing, GatherAndScatterAreInverse) {
  const Tensor x = Put<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor index = Put<int64_t>({2, 0, 1, 1, 2, 0}, {2, 3});
  const Tensor taken = Gather(x, 1, index);
  EXPECT_THAT(taken.ToVector<float>(), ElementsAre(3, 1, 2, 5, 6, 4));
  EXPECT_TRUE(
      BitEqual(Scatter(Put(Tensor::Zeros({2, 3})), 1, index, taken), x));
  EXPECT_THAT(Gather(x, 0, Put<int64_t>({1, 0}, {1, 2})).ToVector<float>(),
              ElementsAre(4, 2));
}

TEST(Indexing, ScatterAddSumsWhatMeets) {
  const Tensor index = Put<int64_t>({0, 0, 2}, {3, 1});
  const Tensor source = Put<float>({1, 2, 4}, {3, 1});
  const Tensor x = Put(Tensor::Ones({3, 1}));
  EXPECT_THAT(ScatterAdd(x, 0, index, source).ToVector<float>(),
              ElementsAre(4, 1, 5));
  EXPECT_THAT(Scatter(x, 0, index, source).ToVector<float>(),
              ElementsAre(2, 1, 4));
  EXPECT_THAT(x.ToVector<float>(), ElementsAre(1, 1, 1));
}

// The CPU reads indices before it uses them.
void ExpectBadIndicesAreNamed() {
  const Tensor x = Tensor::Ones({2, 3});
  const Tensor bad = Put<int64_t>({0, 7, 9}, {1, 3});
  EXPECT_EQ(ErrorOf([&] { Gather(x, 1, bad); }),
            "[gather] index 7 (element 1) is outside [0, 3)");
  EXPECT_THAT(ErrorOf([&] {
                ScatterAdd(x, 1, bad, Tensor::Ones({1, 3}));
              }),
              StartsWith("[scatter_add] index 7"));
  EXPECT_THAT(ErrorOf([&] { Embedding(x, Put<int64_t>({-1})); }),
              StartsWith("[embedding] index -1"));
  EXPECT_THAT(ErrorOf([&] { OneHot(Put<int64_t>({3}), 3); }),
              StartsWith("[one_hot]"));
}

// Those of a GPU are not read back.
void ExpectBadIndicesTakeNaNAndSendNothing() {
  const Tensor x = Put<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor bad = Put<int64_t>({0, 7, -9}, {1, 3});
  const auto is_nan = testing::IsNan();
  EXPECT_THAT(Gather(x, 1, bad).ToVector<float>(),
              ElementsAre(1, is_nan, is_nan));
  EXPECT_THAT(Gather(x.To(DType::kI32), 1, bad).ToVector<int32_t>(),
              ElementsAre(1, 0, 0));
  const Tensor source = Put<float>({7, 8, 9}, {1, 3});
  EXPECT_THAT(Scatter(x, 1, bad, source).ToVector<float>(),
              ElementsAre(7, 2, 3, 4, 5, 6));
  EXPECT_THAT(ScatterAdd(x, 1, bad, source).ToVector<float>(),
              ElementsAre(8, 2, 3, 4, 5, 6));
  const Tensor rows = Put<int64_t>({1, -1, 2});
  for (DType dtype : {DType::kF64, DType::kF16, DType::kBF16}) {
    EXPECT_THAT(
        Embedding(x.To(dtype), rows).To(DType::kF32).ToVector<float>(),
        ElementsAre(4, 5, 6, is_nan, is_nan, is_nan, is_nan, is_nan, is_nan));
  }
  const Tensor dy = Put(Tensor::Ones({3, 2}));
  EXPECT_THAT(EmbeddingBackward(dy, rows, 2).ToVector<float>(),
              ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(OneHot(Put<int64_t>({1, 3}), 2).ToVector<float>(),
              ElementsAre(0, 1, is_nan, is_nan));
}

TEST(Indexing, BadIndicesAreNamedOrOnAGpuTakeNaNAndSendNothing) {
  if (TestDevice().is_cpu()) {
    ExpectBadIndicesAreNamed();
  } else {
    ExpectBadIndicesTakeNaNAndSendNothing();
  }
}

TEST(Indexing, AnIndexOfAnotherRankIsRefused) {
  const Tensor x = Put(Tensor::Ones({2, 3}));
  EXPECT_THAT(ErrorOf([&] { Gather(x, 0, Put(Tensor::Arange(2))); }),
              HasSubstr("rank"));
}

// Entries of one line along `axis` that a loop visits in order.
struct Reference {
  std::vector<double> added, assigned;
};
Reference SlowScatter(int64_t cells, const std::vector<int64_t>& index,
                      const std::vector<double>& source) {
  Reference result;
  result.added.assign(static_cast<size_t>(cells), 1);
  result.assigned = result.added;
  for (size_t i = 0; i < index.size(); ++i) {
    result.added[static_cast<size_t>(index[i])] += source[i];
    result.assigned[static_cast<size_t>(index[i])] = source[i];
  }
  return result;
}

// From none to all sources in one cell, in numbers that take many chunks.
TEST(Indexing, ScatterKeepsOrderAlongLongLines) {
  Generator generator(7);
  for (const auto& [cells, used] :
       {std::pair{1000, 1000}, {1000, 1}, {1000, 3}, {100'000, 100'000}}) {
    const Tensor index = RandInt(0, used, {50'001}, generator);
    const Tensor source = RandInt(-8, 8, {50'001}, generator).To(DType::kF64);
    const Reference want = SlowScatter(cells, index.ToVector<int64_t>(),
                                       source.ToVector<double>());
    for (DType dtype : {DType::kF64, DType::kF32, DType::kI32, DType::kI64}) {
      const Tensor x = Put(Tensor::Ones({cells}, {.dtype = dtype}));
      const Tensor from = Put(source.To(dtype)), at = Put(index);
      EXPECT_EQ(ScatterAdd(x, 0, at, from).To(DType::kF64).ToVector<double>(),
                want.added)
          << Name(dtype) << cells << " " << used;
      EXPECT_EQ(Scatter(x, 0, at, from).To(DType::kF64).ToVector<double>(),
                want.assigned)
          << Name(dtype) << cells << " " << used;
    }
  }
}

// Transposing turns long lines into many short ones: other kernels, one result.
TEST(Indexing, ScatterAndGatherTakeAnyLayout) {
  Generator generator(8);
  const Tensor index = RandInt(0, 40, {500, 6}, generator);
  const Tensor source = RandInt(-8, 8, {500, 6}, generator).To(DType::kF32);
  const Tensor x = RandInt(-8, 8, {40, 6}, generator).To(DType::kF32);
  const Tensor want = ScatterAdd(x, 0, index, source);
  const Tensor last = Scatter(x, 0, index, source);
  const Tensor strided = Put(source.Transpose(0, 1).Clone()).Transpose(0, 1);
  const auto host = [](const Tensor& t) { return t.To(Device::Cpu()); };
  EXPECT_TRUE(BitEqual(host(ScatterAdd(Put(x), 0, Put(index), strided)), want));
  EXPECT_TRUE(BitEqual(host(Scatter(Put(x), 0, Put(index), strided)), last));
  const Tensor turned = Put(x.Transpose(0, 1).Clone());
  const Tensor lines = Put(index).Transpose(0, 1);
  EXPECT_TRUE(
      BitEqual(host(ScatterAdd(turned, 1, lines, strided.Transpose(0, 1))
                        .Transpose(0, 1)),
               want));
  EXPECT_TRUE(BitEqual(host(Gather(turned.Transpose(0, 1), 0, Put(index))),
                       Gather(x, 0, index)));
}

TEST(Indexing, EmbeddingTakesRowsAndSumsGradients) {
  const Tensor table = Put<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor index = Put<int64_t>({2, 0, 2}, {3, 1});
  const Tensor y = Embedding(table, index);
  EXPECT_EQ(y.shape(), Shape({3, 1, 2}));
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(5, 6, 1, 2, 5, 6));
  EXPECT_THAT(EmbeddingBackward(y, index, 3).ToVector<float>(),
              ElementsAre(1, 2, 0, 0, 10, 12));
}

TEST(Indexing, EmbeddingWritesRowsWhereItIsToldTo) {
  const Tensor table = Put<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor index = Put<int64_t>({2, 0, 2});
  const Tensor all = Put(Tensor::Zeros({4, 2}));
  const uint64_t version = all.version();
  EmbeddingInto(all.Slice(0, 1, 4), table, index);
  EXPECT_THAT(all.ToVector<float>(), ElementsAre(0, 0, 5, 6, 1, 2, 5, 6));
  EXPECT_GT(all.version(), version);
  EXPECT_THAT(ErrorOf([&] { EmbeddingInto(all, table, index); }),
              HasSubstr("a dense [3, 2] to write to, got [4, 2]"));
}

TEST(Indexing, EmbeddingSumsManyRepeatsInEveryDType) {
  Generator generator(9);
  for (const auto& [rows, used, width] :
       {std::tuple{500, 500, 33}, {500, 1, 64}, {7, 7, 1}, {9000, 3, 8}}) {
    const Tensor index = RandInt(0, used, {20'000}, generator);
    const Tensor dy = RandNormal({20'000, width}, generator, DType::kF64);
    const Tensor want = Put(EmbeddingBackward(dy, index, rows));
    for (DType dtype : {DType::kF64, DType::kF32}) {
      const Tensor got = EmbeddingBackward(Put(dy.To(dtype)), Put(index), rows);
      const double atol = dtype == DType::kF64 ? 1e-10 : 1e-2;
      EXPECT_TRUE(AllClose(got.To(DType::kF64), want, 1e-5, atol))
          << Name(dtype) << rows << " " << used << " " << width;
    }
  }
}

TEST(Indexing, EmbeddingTakesRowsOfAnyWidth) {
  Generator generator(10);
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kU8}) {
    for (int64_t width : {1, 3, 8, 50, 64}) {
      const Tensor table = RandInt(0, 100, {30, width}, generator).To(dtype);
      const Tensor index = RandInt(0, 30, {7, 11}, generator);
      EXPECT_TRUE(BitEqual(Embedding(Put(table), Put(index)).To(Device::Cpu()),
                           Embedding(table, index)))
          << Name(dtype) << width;
    }
  }
}

TEST(Indexing, GradientsAreEqualForAnyNumberOfThreads) {
  Generator generator(4);
  const Tensor index = Put(RandInt(0, 500, {20'000}, generator));
  const Tensor dy = Put(RandNormal({20'000, 33}, generator));
  const int threads = ComputeThreads();
  SetComputeThreads(1);
  const Tensor one = EmbeddingBackward(dy, index, 500);
  SetComputeThreads(5);
  EXPECT_TRUE(BitEqual(EmbeddingBackward(dy, index, 500), one));
  SetComputeThreads(threads);
}

TEST(Indexing, OneHotMarksTheLabel) {
  EXPECT_THAT(OneHot(Put<int64_t>({1, 0}), 2).ToVector<float>(),
              ElementsAre(0, 1, 1, 0));
}

}  // namespace
}  // namespace baton::ops
