// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using ::testing::ElementsAre;
using ::testing::StartsWith;

Tensor Zeros(const Shape& shape) { return Put(Tensor::Zeros(shape)); }
Tensor Ones(const Shape& shape) { return Put(Tensor::Ones(shape)); }

// The plain way, in double: `marked` axes of x summed, others kept.
std::vector<double> SlowSum(const Tensor& x, const std::vector<bool>& marked) {
  const auto values = x.To(DType::kF64).ToVector<double>();
  // Of the sums, how far apart those of neighbours along each axis are.
  std::vector<int64_t> extents(marked.size()), steps(marked.size());
  int64_t outputs = 1;
  for (size_t d = marked.size(); d-- > 0;) {
    extents[d] = x.dim(static_cast<int>(d));
    steps[d] = marked[d] ? 0 : outputs;
    if (!marked[d]) outputs *= extents[d];
  }
  std::vector<double> sums(static_cast<size_t>(outputs), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t at = 0;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      at += rest % extents[d] * steps[d];
    }
    sums[static_cast<size_t>(at)] += values[i];
  }
  return sums;
}

void ExpectSums(const Tensor& x, double rtol = 1e-5) {
  for (int mask = 0; mask < (1 << x.rank()); ++mask) {
    std::vector<int> axes;
    std::vector<bool> marked;
    for (int d = 0; d < x.rank(); ++d) {
      marked.push_back((mask >> d & 1) != 0);
      if (marked.back()) axes.push_back(d);
    }
    const Tensor got = Sum(x, axes);
    const Tensor want = Put(SlowSum(x, marked), got.shape());
    EXPECT_TRUE(AllClose(got.To(DType::kF64), want, rtol, 1e-3))
        << Name(x.dtype()) << x.shape().ToString() << " axes " << mask;
  }
}

TEST(Reduce, SumsOverAnyAxesInAnyLayout) {
  Generator generator(1);
  const Tensor x = Put(RandNormal({3, 17, 5, 70}, generator));
  ExpectSums(x);
  ExpectSums(x.Contiguous(MemoryFormat::kChannelsLast));
  ExpectSums(x.Permute({3, 1, 0, 2}));
  ExpectSums(x.Slice(3, 1, 70, 3));
  ExpectSums(Put(RandNormal({4, 1}, generator)).Expand({3, 4, 6}));
  ExpectSums(Put(RandNormal({40'000, 9}, generator)));
  ExpectSums(Put(RandNormal({9, 40'000}, generator)));
  ExpectSums(Put(RandNormal({2, 300, 700}, generator)));
}

// Enough elements for partial sums, in shapes that fill packs and that do not.
TEST(Reduce, SumsLongAxesOfEveryDType) {
  Generator generator(3);
  for (int value = 0; value < 8; ++value) {
    const auto dtype = static_cast<DType>(value);
    const bool small = dtype == DType::kF16 || dtype == DType::kBF16;
    for (const Shape& shape :
         {Shape({9000, 24}), Shape({4, 20'000}), Shape({2, 2001, 16}),
          Shape({3001, 3}), Shape({50'001})}) {
      Tensor x = RandInt(0, 2, shape, generator).To(dtype);
      if (dtype == DType::kF16) x = MulScalar(x, 0.125);  // below its largest
      ExpectSums(Put(x), small ? 1e-2 : 1e-5);
    }
  }
}

TEST(Reduce, SumsEveryDType) {
  for (int value = 0; value < 8; ++value) {
    const auto dtype = static_cast<DType>(value);
    const Tensor x = Put(Tensor::Ones({300, 3}, {.dtype = dtype}));
    const Tensor sum = Sum(x);
    EXPECT_EQ(sum.Item(), 900) << Name(dtype);
    EXPECT_EQ(sum.dtype(), IsFloating(dtype) ? dtype : DType::kI64);
  }
}

TEST(Reduce, SumsOfSmallFloatsAccumulateInF32) {
  const Tensor x = Put(Tensor::Full({60'000}, 1, {.dtype = DType::kF16}));
  EXPECT_EQ(Mean(x).Item(), 1);  // a sum in f16 would stop at 2048
}

TEST(Reduce, ResultsAreEqualForAnyNumberOfThreads) {
  Generator generator(2);
  const Tensor x = Put(RandNormal({1000, 333}, generator));
  const int threads = ComputeThreads();
  for (const std::vector<int>& axes :
       {std::vector<int>{0}, std::vector<int>{1}, std::vector<int>{0, 1}}) {
    SetComputeThreads(1);
    const Tensor one = Sum(x, axes);
    for (int t : {2, 3, 7}) {
      SetComputeThreads(t);
      EXPECT_TRUE(BitEqual(Sum(x, axes), one));
    }
  }
  SetComputeThreads(threads);
}

TEST(Reduce, EmptyAxesSumToZero) {
  EXPECT_EQ(Sum(Zeros({0, 3})).Item(), 0);
  EXPECT_THAT(Sum(Zeros({0, 2}), {0}).ToVector<float>(), ElementsAre(0, 0));
  EXPECT_EQ(Sum(Zeros({0, 2}), {1}).shape(), Shape({0}));
  EXPECT_TRUE(std::isnan(Mean(Zeros({0})).Item()));
}

TEST(Reduce, KeepDimsKeepsThem) {
  const Tensor x = Ones({2, 3, 4});
  EXPECT_EQ(Sum(x, {1}, true).shape(), Shape({2, 1, 4}));
  EXPECT_EQ(Mean(x, {-1}).shape(), Shape({2, 3}));
  EXPECT_EQ(Sum(x).shape(), Shape());
  EXPECT_EQ(Max(x, 0, true).indices.shape(), Shape({1, 3, 4}));
}

TEST(Reduce, MaxAndMinGiveTheFirstPosition) {
  const Tensor x = Put<float>({1, 5, 5, -2, -2, 0}, {2, 3});
  const auto max = Max(x, 1);
  EXPECT_THAT(max.values.ToVector<float>(), ElementsAre(5, 0));
  EXPECT_THAT(max.indices.ToVector<int64_t>(), ElementsAre(1, 2));
  const auto min = Min(x, 1);
  EXPECT_THAT(min.indices.ToVector<int64_t>(), ElementsAre(0, 0));
  EXPECT_THAT(ArgMax(x, 0).ToVector<int64_t>(), ElementsAre(0, 0, 0));
  EXPECT_EQ(ArgMax(Put<float>({1, NAN, 3}), 0).Item(), 1);
}

TEST(Reduce, MaxFindsEveryPositionOfLongLines) {
  for (int64_t size : {1, 63, 64, 65, 200}) {
    for (int64_t at = 0; at < size; ++at) {
      const Tensor x = Zeros({1, size});
      x.Slice(1, at, size).Fill(1);
      ASSERT_EQ(Max(x, 1).indices.Item(), at);
      x.Slice(1, at, size).Fill(NAN);
      ASSERT_EQ(Min(x, 1).indices.Item(), at);
      ASSERT_EQ(ArgMax(x.Transpose(0, 1), 0).Item(), at);
    }
  }
}

// The plain way: of x [A, B, C] along `axis`, first positions row-major.
std::vector<int64_t> SlowArgMax(const Tensor& x, int axis) {
  const Tensor lines = x.To(DType::kF64).Transpose(axis, 2).Contiguous();
  const auto values = lines.ToVector<double>();
  const auto size = static_cast<size_t>(lines.dim(2));
  std::vector<int64_t> positions;
  for (size_t at = 0; at < values.size(); at += size) {
    size_t best = 0;
    for (size_t k = 1; k < size; ++k) {
      if (values[at + k] > values[at + best]) best = k;
    }
    positions.push_back(static_cast<int64_t>(best));
  }
  return positions;
}

TEST(Reduce, ExtremesAgreeOnEveryAxisOfEveryDType) {
  Generator generator(5);
  for (int value = 0; value < 8; ++value) {
    const auto dtype = static_cast<DType>(value);
    for (const Shape& shape :
         {Shape({3, 40, 64}), Shape({2, 5000, 3}), Shape({5000, 3, 2}),
          Shape({1, 2, 5000}), Shape({70, 1, 300})}) {
      const Tensor host = RandInt(0, 100, shape, generator).To(dtype);
      const Tensor x = Put(host);
      for (int axis = 0; axis < 3; ++axis) {
        const auto [values, indices] = Max(x, axis, true);
        EXPECT_EQ(indices.Transpose(axis, 2).ToVector<int64_t>(),
                  SlowArgMax(host, axis))
            << Name(dtype) << shape.ToString() << axis;
        EXPECT_EQ(values.dtype(), dtype);
        EXPECT_TRUE(BitEqual(values, Gather(x, axis, indices)));
      }
    }
  }
}

TEST(Reduce, SumToUndoesBroadcasting) {
  const Tensor x = Ones({2, 3, 4});
  EXPECT_THAT(SumTo(x, {3, 1}).ToVector<float>(), ElementsAre(8, 8, 8));
  EXPECT_EQ(SumTo(x, {}).Item(), 24);
  EXPECT_EQ(SumTo(x, {1, 1, 4}).shape(), Shape({1, 1, 4}));
  EXPECT_EQ(SumTo(x, {2, 3, 4}).storage(), x.storage());
  EXPECT_EQ(SumTo(x.To(DType::kI32), {4}).dtype(), DType::kI32);
  EXPECT_THAT(ErrorOf([&] { SumTo(x, {5}); }), StartsWith("[sum_to]"));
}

TEST(Reduce, WrongArgumentsNameTheOp) {
  const Tensor x = Ones({2, 0});
  EXPECT_THAT(ErrorOf([&] { Sum(x, {2}); }), StartsWith("[sum] axis 2"));
  EXPECT_THAT(ErrorOf([&] { Sum(x, {0, -2}); }), StartsWith("[sum]"));
  EXPECT_THAT(ErrorOf([&] { Mean(Put(Tensor::Arange(3))); }),
              StartsWith("[mean]"));
  EXPECT_THAT(ErrorOf([&] { Max(x, 1); }), StartsWith("[max]"));
  EXPECT_THAT(ErrorOf([&] { ArgMax(Put(Tensor::Scalar(1)), 0); }),
              StartsWith("[argmax]"));
}

}  // namespace
}  // namespace baton::ops
