// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/multi_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using ::testing::Each;
using ::testing::StartsWith;

constexpr DType kFloating[] = {DType::kF32, DType::kF64, DType::kF16,
                               DType::kBF16};

// Sizes of the parameters of a model; some are empty, one takes many blocks.
std::vector<int64_t> Sizes() {
  std::vector<int64_t> sizes = {1, 0, 3, 17, 4096, 4097, 50'001};
  for (int64_t i = 0; i < 1000; ++i) sizes.push_back(i % 9);
  return sizes;
}

double NumberAt(int64_t tensor, int64_t i) {
  return static_cast<double>((tensor * 5 + i) % 61);
}

// Tensor t has size sizes[t] and begins `offset` elements into its memory.
std::vector<Tensor> Numbered(DType dtype, int64_t offset) {
  std::vector<Tensor> tensors;
  const std::vector<int64_t> sizes = Sizes();
  for (size_t t = 0; t < sizes.size(); ++t) {
    std::vector<double> values;
    for (int64_t i = -offset; i < sizes[t]; ++i)
      values.push_back(i < 0 ? 9 : NumberAt(static_cast<int64_t>(t), i));
    tensors.push_back(
        Put(values).To(dtype).Slice(0, offset, offset + sizes[t]));
  }
  return tensors;
}

void ExpectTimes(const std::vector<Tensor>& tensors, double factor,
                 const std::string& what) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto values = tensors[t].To(DType::kF64).ToVector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], factor * NumberAt(static_cast<int64_t>(t),
                                             static_cast<int64_t>(i)))
          << what << ", tensor " << t << " at " << i;
    }
  }
}

TEST(MultiTensor, CastsAllPairsOfTypes) {
  for (DType to : kFloating) {
    for (DType from : kFloating) {
      for (int64_t offset : {0, 1}) {
        const auto targets = Numbered(to, offset);
        ZeroMany(targets);
        for (const Tensor& target : targets)
          ASSERT_THAT(target.To(DType::kF64).ToVector<double>(), Each(0));
        CastMany(targets, Numbered(from, 0));
        ExpectTimes(targets, 1, std::string(Name(from)) + " to " + Name(to));
      }
    }
  }
}

TEST(MultiTensor, AddsTheSameAndNarrowerTypes) {
  for (DType to : kFloating) {
    for (DType from : kFloating) {
      const auto targets = Numbered(to, 1);
      const bool widens = to == DType::kF32 && from != DType::kF64;
      if (to == from || widens) {
        AddIntoMany(targets, Numbered(from, 0));
        ExpectTimes(targets, 2, std::string(Name(from)) + " to " + Name(to));
      } else {
        EXPECT_THAT(ErrorOf([&] { AddIntoMany(targets, Numbered(from, 0)); }),
                    StartsWith("[add_into_many] cannot add"));
        ExpectTimes(targets, 1, "refused");
      }
    }
  }
}

TEST(MultiTensor, TakesOtherOrdersOfMemoryAndCountsVersions) {
  const Tensor image =
      Put(Tensor::Arange(120, DType::kF32)).Reshape({2, 3, 4, 5});
  const Tensor last = image.Contiguous(MemoryFormat::kChannelsLast);
  const Tensor strided = Put(Tensor::Zeros({2, 3, 4, 10})).Slice(3, 0, 10, 2);
  const std::vector<Tensor> targets = {last.Clone(), last.Clone(), strided};
  std::vector<uint64_t> before;
  for (const Tensor& target : targets) before.push_back(target.version());
  CastMany(targets, {image, last, last});
  AddIntoMany(targets, {image, last, image});
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto values = targets[i].ToVector<float>();
    for (size_t j = 0; j < values.size(); ++j)
      ASSERT_EQ(values[j], 2 * static_cast<float>(j)) << i;
    EXPECT_EQ(targets[i].version(), before[i] + 2);
  }
  ZeroMany(targets);
  for (const Tensor& target : targets)
    EXPECT_THAT(target.ToVector<float>(), Each(0));
}

TEST(MultiTensor, ClonesWhateverThereIsInItsOrder) {
  const Tensor image = Put(Tensor::Arange(24, DType::kF32))
                           .Reshape({1, 2, 3, 4})
                           .Contiguous(MemoryFormat::kChannelsLast);
  const Tensor count = Put(Tensor::From<int64_t>({7}));
  const std::vector<Tensor> copies = CloneMany({image, Tensor(), count});
  image.Fill(0);
  count.Fill(0);
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[0].SuggestFormat(), MemoryFormat::kChannelsLast);
  EXPECT_EQ(copies[0].Flatten().ToVector<float>(),
            Tensor::Arange(24, DType::kF32).ToVector<float>());
  EXPECT_FALSE(copies[1].defined());
  EXPECT_EQ(copies[2].ToVector<int64_t>(), std::vector<int64_t>{7});
}

TEST(MultiTensor, CopiesWhateverThereIsUnlessTheConditionIsZero) {
  for (const float condition : {0.F, 1.F}) {
    const std::vector<Tensor> targets = {
        Put(Tensor::Zeros({3, 7})), Put(Tensor::Zeros({70000})),
        Put(Tensor::From<int64_t>({1, 2, 3})), Put(Tensor::Zeros({}))};
    const std::vector<Tensor> sources = {
        Put(Tensor::Ones({3, 7})), Put(Tensor::Ones({70000})),
        Put(Tensor::From<int64_t>({1, 1, 1})), Put(Tensor::Ones({}))};
    CopyManyIf(Put(Tensor::Full({}, condition)), targets, sources);
    EXPECT_THAT(targets[0].ToVector<float>(), Each(condition));
    EXPECT_THAT(targets[1].ToVector<float>(), Each(condition));
    EXPECT_EQ(targets[2].ToVector<int64_t>()[2], condition == 0 ? 3 : 1);
    EXPECT_EQ(targets[3].Item(), condition);
  }
}

TEST(MultiTensor, UnscalesIntoF32AndTellsWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor scale = Put<float>({4}, {});
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (float bad : {1.f, kInfinity, -kInfinity, std::nanf("")}) {
      const Tensor flag = Put(Tensor::Zeros({}));
      const Tensor small = Put<float>({2, bad}).To(dtype);
      const Tensor large = Put(Tensor::Ones({10007})).To(dtype);
      const std::vector<Tensor> targets = {Put(Tensor::Zeros({2})),
                                           Put(Tensor::Zeros({10007}))};
      UnscaleMany(targets, {small, large}, scale, flag);
      EXPECT_EQ(flag.Item(), bad == 1 ? 0 : 1) << Name(dtype) << " " << bad;
      EXPECT_EQ(targets[0].ToVector<float>()[0], 0.5f);
      EXPECT_THAT(targets[1].ToVector<float>(), Each(0.25f));
    }
  }
  const Tensor own = Put<float>({8, -4});
  UnscaleMany({own}, {own}, scale, Tensor());
  EXPECT_EQ(own.ToVector<float>(), (std::vector<float>{2, -1}));
  EXPECT_THAT(ErrorOf([&] {
                UnscaleMany({own.To(DType::kF64)}, {own}, scale, Tensor());
              }),
              StartsWith("[unscale_many] cannot unscale f32 into f64"));
}

TEST(MultiTensor, SquareSumIsOverAllTensorsOfAllDTypes) {
  double expected = 0;
  std::vector<Tensor> all;
  for (DType dtype : kFloating) {
    for (int64_t offset : {0, 1}) {
      for (const Tensor& tensor : Numbered(dtype, offset)) {
        for (double x : tensor.To(DType::kF64).ToVector<double>())
          expected += x * x;
        all.push_back(tensor);
      }
    }
  }
  const Tensor sum = SquareSum(all);
  EXPECT_EQ(sum.dtype(), DType::kF64);
  EXPECT_EQ(sum.device(), test::TestDevice());
  EXPECT_NEAR(sum.Item(), expected, 1e-6 * expected);
  EXPECT_EQ(SquareSum(all).Item(), sum.Item());
  // A view whose elements do not lie side by side.
  const Tensor wide = Put<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(SquareSum({wide.Slice(1, 0, 1)}).Item(), 10);
  EXPECT_TRUE(std::isnan(SquareSum({Put<float>({std::nanf("")})}).Item()));
  EXPECT_EQ(SquareSum({Put(Tensor::Zeros({0}))}).Item(), 0);
  EXPECT_THAT(ErrorOf([&] { SquareSum({}); }), StartsWith("[square_sum]"));
}

TEST(MultiTensor, WrongListsNameTheOp) {
  const Tensor x = Put(Tensor::Ones({3}));
  EXPECT_THAT(ErrorOf([&] {
                AddIntoMany({x}, {x, x});
              }),
              StartsWith("[add_into_many] 1 targets for 2"));
  EXPECT_THAT(ErrorOf([&] { CastMany({x}, {Put(Tensor::Ones({4}))}); }),
              StartsWith("[cast_many]"));
  EXPECT_THAT(ErrorOf([&] {
                ZeroMany({x, Tensor()});
              }),
              StartsWith("[zero_many]"));
  EXPECT_THAT(x.ToVector<float>(), Each(1));
}

}  // namespace
}  // namespace baton::ops
