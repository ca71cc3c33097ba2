// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

constexpr DType kNumbers[] = {DType::kF32,  DType::kF64, DType::kF16,
                              DType::kBF16, DType::kI32, DType::kI64,
                              DType::kU8};

std::vector<double> Doubles(const Tensor& x) {
  return x.To(DType::kF64).ToVector<double>();
}

TEST(Arithmetic, WorksInEveryNumericDType) {
  const Tensor a = Put<double>({1, 6, 12});
  const Tensor b = Put<double>({1, 2, 3});
  for (DType dtype : kNumbers) {
    const Tensor x = a.To(dtype);
    const Tensor y = b.To(dtype);
    EXPECT_THAT(Doubles(Add(x, y)), ElementsAre(2, 8, 15)) << Name(dtype);
    EXPECT_THAT(Doubles(Sub(x, y)), ElementsAre(0, 4, 9)) << Name(dtype);
    EXPECT_THAT(Doubles(Mul(x, y)), ElementsAre(1, 12, 36)) << Name(dtype);
    EXPECT_THAT(Doubles(Div(x, y)), ElementsAre(1, 3, 4)) << Name(dtype);
    EXPECT_THAT(Doubles(Maximum(x, y)), ElementsAre(1, 6, 12));
    EXPECT_THAT(Doubles(Minimum(x, y)), ElementsAre(1, 2, 3));
    EXPECT_THAT(Doubles(AddScalar(x, 2)), ElementsAre(3, 8, 14));
    EXPECT_THAT(Doubles(MulScalar(x, 2)), ElementsAre(2, 12, 24));
    EXPECT_THAT(Doubles(Clamp(x, 2, 8)), ElementsAre(2, 6, 8));
    EXPECT_THAT(Doubles(Abs(x)), ElementsAre(1, 6, 12));
    EXPECT_THAT(Less(y, x).ToVector<bool>(), ElementsAre(false, true, true));
    EXPECT_EQ(Add(x, y).dtype(), dtype);
  }
}

TEST(Arithmetic, BoolsAreLogic) {
  const Tensor a = Put<bool>({true, true, false, false});
  const Tensor b = Put<bool>({true, false, true, false});
  EXPECT_THAT(Add(a, b).ToVector<bool>(), ElementsAre(true, true, true, false));
  EXPECT_THAT(Mul(a, b).ToVector<bool>(),
              ElementsAre(true, false, false, false));
  EXPECT_THAT(ErrorOf([&] { Sub(a, b); }), StartsWith("[sub]"));
  EXPECT_THAT(ErrorOf([&] { Neg(a); }), StartsWith("[neg]"));
}

TEST(Arithmetic, BroadcastsEveryPairOfLayouts) {
  Generator generator(1);
  const std::vector<Shape> shapes = {{2, 3, 4, 5}, {3, 1, 1},    {5},
                                     {},           {2, 1, 4, 1}, {1, 3, 1, 5}};
  for (const Shape& left : shapes) {
    for (const Shape& right : shapes) {
      Tensor a = Put(RandNormal(left, generator));
      const Tensor b = Put(RandNormal(right, generator));
      const Shape shape = BroadcastShapes("test", left, right);
      if (left.rank() == 4) a = a.Contiguous(MemoryFormat::kChannelsLast);
      const auto x = a.Expand(shape).ToVector<float>();
      const auto y = b.Expand(shape).ToVector<float>();
      const auto z = Sub(a, b).ToVector<float>();
      ASSERT_EQ(z.size(), x.size());
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(z[i], x[i] - y[i]);
    }
  }
}

TEST(Arithmetic, KeepsTheMemoryOrderOfTheFirstInput) {
  const Tensor x =
      Put(Tensor::Ones({2, 3, 4, 5})).Contiguous(MemoryFormat::kChannelsLast);
  EXPECT_EQ(Add(x, x).SuggestFormat(), MemoryFormat::kChannelsLast);
  EXPECT_EQ(Add(Put(Tensor::Ones({3, 1, 1})), x).SuggestFormat(),
            MemoryFormat::kChannelsLast);
  EXPECT_EQ(Exp(x).SuggestFormat(), MemoryFormat::kChannelsLast);
}

TEST(Arithmetic, TakesViews) {
  const Tensor x = Put(Tensor::Arange(6, DType::kF32).Reshape({2, 3}));
  EXPECT_THAT(Doubles(Add(x.Transpose(0, 1), x.Transpose(0, 1))),
              ElementsAre(0, 6, 2, 8, 4, 10));
  EXPECT_THAT(Doubles(Neg(x.Slice(1, 0, 3, 2))), ElementsAre(0, -2, -3, -5));
}

TEST(Arithmetic, IntegersWrapAndNeverDivideByZero) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  const Tensor low = Put<int32_t>({kMin});
  const Tensor minus = Put<int32_t>({-1});
  EXPECT_EQ(Add(low, minus).ToVector<int32_t>()[0],
            std::numeric_limits<int32_t>::max());
  EXPECT_EQ(Div(low, minus).ToVector<int32_t>()[0], kMin);
  EXPECT_EQ(Neg(low).ToVector<int32_t>()[0], kMin);
  EXPECT_EQ(Abs(low).ToVector<int32_t>()[0], kMin);
  const Tensor zero = Put<int32_t>({0});
  if (test::TestDevice().is_cpu()) {
    EXPECT_THAT(ErrorOf([&] { Div(low, zero); }), StartsWith("[div]"));
  } else {
    EXPECT_EQ(Div(low, zero).ToVector<int32_t>()[0], 0);
  }
}

TEST(Arithmetic, UnaryFunctionsMatchTheCLibrary) {
  Generator generator(2);
  const Tensor x = Put(RandUniform({10'000}, -80, 80, generator));
  const auto in = x.ToVector<float>();
  const auto exp = Exp(x).ToVector<float>();
  const auto log = Log(Abs(x)).ToVector<float>();
  const auto cube = PowScalar(x, 3).ToVector<float>();
  const auto square = PowScalar(x, 2).ToVector<float>();
  const auto root = Sqrt(Abs(x)).ToVector<float>();
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_NEAR(exp[i] / std::exp(double{in[i]}), 1, 3e-7) << in[i];
    EXPECT_FLOAT_EQ(log[i], std::log(std::fabs(in[i])));
    EXPECT_FLOAT_EQ(cube[i], std::pow(in[i], 3.f));
    EXPECT_EQ(square[i], in[i] * in[i]);
    EXPECT_EQ(root[i], std::sqrt(std::fabs(in[i])));
  }
}

TEST(Arithmetic, SinAndCosMatchTheCLibrary) {
  Generator generator(4);
  const Tensor x = Put(RandUniform({5000}, -1000, 1000, generator));
  const auto in = x.ToVector<float>();
  const auto sine = Sin(x).ToVector<float>();
  const auto cosine = Cos(x).ToVector<float>();
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_NEAR(sine[i], std::sin(double{in[i]}), 2e-7) << in[i];
    EXPECT_NEAR(cosine[i], std::cos(double{in[i]}), 2e-7) << in[i];
  }
  EXPECT_TRUE(std::isnan(Sin(Put<float>({INFINITY})).ToVector<float>()[0]));
  EXPECT_THAT(ErrorOf([&] { Cos(Put<int32_t>({1})); }), StartsWith("[cos]"));
}

TEST(Arithmetic, PowBroadcastsAndKnowsTheLimits) {
  const Tensor base = Put<float>({2, -2, 0, NAN, 1}, {5, 1});
  const Tensor exponent = Put<float>({3, 0, -1});
  const auto y = Pow(base, exponent).ToVector<float>();
  EXPECT_THAT(std::vector<float>(y.begin(), y.begin() + 9),
              ElementsAre(8, 1, 0.5, -8, 1, -0.5, 0, 1, INFINITY));
  EXPECT_TRUE(std::isnan(y[9]));
  EXPECT_EQ(y[10], 1);
  EXPECT_EQ(Pow(Put<float>({1}), Put<float>({NAN})).Item(), 1);
  EXPECT_TRUE(std::isnan(Pow(Put<float>({-2}), Put<float>({0.5})).Item()));
  EXPECT_EQ(Pow(base.To(DType::kBF16), exponent.To(DType::kBF16)).dtype(),
            DType::kBF16);
  EXPECT_THAT(ErrorOf([&] { Pow(Put<int32_t>({1}), Put<int32_t>({1})); }),
              StartsWith("[pow]"));
}

TEST(Arithmetic, MaskedFillBroadcastsBothSides) {
  const Tensor mask = Put<bool>({true, false, true});
  for (DType dtype : kNumbers) {
    const Tensor x = Put<double>({1, 2}, {2, 1}).To(dtype);
    EXPECT_THAT(Doubles(MaskedFill(x, mask, 7)), ElementsAre(7, 1, 7, 7, 2, 7));
  }
  const auto y =
      MaskedFill(Put<float>({NAN, NAN, 3}), mask, -INFINITY).ToVector<float>();
  EXPECT_EQ(y[0], -INFINITY);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(MaskedFill(Put(Tensor::Zeros({0, 3})), mask, 1).numel(), 0);
  EXPECT_THAT(ErrorOf([&] { MaskedFill(Put<int32_t>({1}), mask, 0.5); }),
              StartsWith("[masked_fill]"));
  EXPECT_THAT(ErrorOf([&] { MaskedFill(mask, Put<float>({1}), 0); }),
              StartsWith("[masked_fill] expected a mask of bool"));
}

TEST(Arithmetic, ExpReachesItsLimits) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto y = Exp(Put<float>({kInf, -kInf, 0.f, 88.72f, 89.f, -100.f, NAN}))
                     .ToVector<float>();
  EXPECT_EQ(y[0], kInf);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 1);
  EXPECT_FLOAT_EQ(y[3], std::exp(88.72f));
  EXPECT_EQ(y[4], kInf);
  EXPECT_NEAR(y[5], std::exp(-100.f), 2e-45);
  EXPECT_TRUE(std::isnan(y[6]));
}

TEST(Arithmetic, LogReachesItsLimits) {
  const float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> in = {1e-45f, 1e-38f, 1e-30f, 0.5f,  0.7f, 0.9999f,
                                 1.f,    1.001f, 2.f,    1e10f, 3e38f};
  const auto y = Log(Put(in)).ToVector<float>();
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_FLOAT_EQ(y[i], std::log(in[i])) << in[i];
  }
  const auto z =
      Log(Put<float>({0.f, -0.f, kInf, -1.f, NAN, -kInf})).ToVector<float>();
  EXPECT_EQ(z[0], -kInf);
  EXPECT_EQ(z[1], -kInf);
  EXPECT_EQ(z[2], kInf);
  for (size_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(z[i])) << i;
}

TEST(Arithmetic, ComparisonsTreatNanAsUnequal) {
  const Tensor nan = Put<float>({NAN});
  const Tensor one = Put(Tensor::Ones({1}));
  EXPECT_FALSE(Equal(nan, nan).ToVector<bool>()[0]);
  EXPECT_TRUE(NotEqual(nan, nan).ToVector<bool>()[0]);
  EXPECT_FALSE(GreaterEqual(nan, one).ToVector<bool>()[0]);
  EXPECT_FALSE(LessEqual(nan, one).ToVector<bool>()[0]);
  EXPECT_TRUE(std::isnan(Maximum(nan, one).Item()));
  EXPECT_TRUE(std::isnan(Minimum(one, nan).Item()));
  EXPECT_TRUE(Greater(one, Neg(one)).ToVector<bool>()[0]);
}

TEST(Arithmetic, WhereBroadcastsAllThree) {
  const Tensor c = Put<bool>({true, false}, {2, 1});
  EXPECT_THAT(Doubles(Where(c, Put<float>({1, 2}), Put(Tensor::Scalar(9)))),
              ElementsAre(1, 2, 9, 9));
  EXPECT_THAT(ErrorOf([&] {
                Where(Put(Tensor::Ones({1})), Put(Tensor::Ones({1})),
                      Put(Tensor::Ones({1})));
              }),
              StartsWith("[where]"));
}

TEST(Arithmetic, InPlaceWritesCountAVersion) {
  const Tensor x = Put<float>({1, 2, 3, 4}, {2, 2});
  const uint64_t before = x.version();
  AddInto(x, Put<float>({10, 20}), 0.5);
  EXPECT_THAT(Doubles(x), ElementsAre(6, 12, 8, 14));
  MulInto(x, x);
  EXPECT_THAT(Doubles(x), ElementsAre(36, 144, 64, 196));
  ScaleInto(x, 0.5);
  EXPECT_THAT(Doubles(x), ElementsAre(18, 72, 32, 98));
  EXPECT_EQ(x.version(), before + 3);
  AddInto(x, x.Transpose(0, 1));
  EXPECT_THAT(Doubles(x), ElementsAre(36, 104, 104, 196));
}

TEST(Arithmetic, EmptyTensorsGiveEmptyResults) {
  const Tensor x = Put(Tensor::Zeros({0, 3}));
  EXPECT_EQ(Add(x, Put(Tensor::Ones({3}))).shape(), Shape({0, 3}));
  EXPECT_EQ(Exp(x).numel(), 0);
  EXPECT_TRUE(AllClose(x, x));
}

TEST(Arithmetic, WrongArgumentsNameTheOp) {
  const Tensor x = Put(Tensor::Ones({2, 3}));
  const Tensor i = Put(Tensor::Ones({2, 3}, {.dtype = DType::kI32}));
  EXPECT_EQ(ErrorOf([&] { Add(x, Put(Tensor::Ones({4}))); }),
            "[add] shapes [2, 3] and [4] do not broadcast");
  EXPECT_EQ(ErrorOf([&] { Mul(x, i); }),
            "[mul] expected one dtype, got f32 "
            "and i32");
  EXPECT_THAT(ErrorOf([&] { Exp(i); }), StartsWith("[exp]"));
  EXPECT_THAT(ErrorOf([&] { AddScalar(i, 0.5); }), StartsWith("[add_scalar]"));
  EXPECT_THAT(ErrorOf([&] { AddInto(Put(Tensor::Ones({3})), x); }),
              StartsWith("[add_into]"));
  EXPECT_THAT(ErrorOf([&] { AddInto(Put(Tensor::Ones({1})).Expand({3}), x); }),
              StartsWith("[add_into]"));
  EXPECT_THAT(ErrorOf([&] { Less(x, i); }), StartsWith("[less]"));
  EXPECT_THAT(ErrorOf([&] { Add(x, Tensor()); }), StartsWith("[add]"));
  EXPECT_THAT(ErrorOf([&] { Clamp(x, 2, 1); }), StartsWith("[clamp]"));
}

TEST(Arithmetic, AllCloseAndBitEqualDiffer) {
  const Tensor x = Put<float>({1, 0.f, INFINITY});
  const Tensor y = Put<float>({1 + 1e-6f, -0.f, INFINITY});
  EXPECT_TRUE(AllClose(x, y));
  EXPECT_FALSE(BitEqual(x, y));
  EXPECT_TRUE(BitEqual(x, x.Clone()));
  EXPECT_FALSE(AllClose(x, Put<float>({1, 1, INFINITY})));
  EXPECT_FALSE(AllClose(x, x.To(DType::kF64)));
}

TEST(Arithmetic, LargeTensorsAreEqualForAnyNumberOfThreads) {
  Generator generator(3);
  const Tensor a = Put(RandNormal({301, 1001}, generator));
  const Tensor b = Put(RandNormal({1001}, generator));
  const int threads = ComputeThreads();
  SetComputeThreads(1);
  const Tensor one = Mul(a, b);
  SetComputeThreads(4);
  EXPECT_TRUE(BitEqual(Mul(a, b), one));
  SetComputeThreads(threads);
}

// Small integers, exact in every dtype: element i is (i * factor) % 7.
Tensor Numbered(int64_t count, int64_t factor, DType dtype) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(i * factor % 7));
  return Put(values).To(dtype);
}

TEST(Arithmetic, TakesEverySizeAndAlignment) {
  for (DType dtype : kNumbers) {
    for (int64_t size : {1, 2, 7, 16, 33, 255, 4099}) {
      for (int64_t offset : {0, 1, 4}) {
        const Tensor a = Numbered(size + offset, 3, dtype);
        const Tensor b = Numbered(size + offset, 5, dtype);
        const Tensor x = a.Slice(0, offset, size + offset);
        const Tensor sum = Add(x, b.Slice(0, 0, size));
        AddInto(x, x, 2);
        const auto got = Doubles(sum);
        const auto tripled = Doubles(a);
        for (int64_t i = 0; i < size; ++i) {
          const auto at = static_cast<size_t>(i);
          const double left = static_cast<double>((i + offset) * 3 % 7);
          ASSERT_EQ(got[at], left + static_cast<double>(i * 5 % 7))
              << Name(dtype) << " " << size << " from " << offset;
          ASSERT_EQ(tripled[at + static_cast<size_t>(offset)], 3 * left);
        }
        if (offset > 0) {
          ASSERT_EQ(tripled[0], 0);
        }
      }
    }
  }
}

TEST(Arithmetic, BroadcastsInEveryMemoryOrder) {
  const Tensor x = Numbered(4 * 24 * 5 * 6, 3, DType::kF32);
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kU8}) {
      const Tensor image =
          x.Reshape({4, 24, 5, 6}).To(dtype).Contiguous(format);
      const Tensor bias = Numbered(24, 2, dtype).Reshape({24, 1, 1});
      const Tensor rows = Numbered(6, 1, dtype);
      const auto in = Doubles(image);
      const auto biased = Doubles(Add(bias, image));
      const auto wider = Doubles(Maximum(image, rows));
      for (int64_t i = 0; i < x.numel(); ++i) {
        const auto at = static_cast<size_t>(i);
        const double add = static_cast<double>(i / 30 % 24 * 2 % 7);
        const double row = static_cast<double>(i % 6);
        ASSERT_EQ(biased[at], in[at] + add) << Name(dtype) << " " << i;
        ASSERT_EQ(wider[at], std::max(in[at], row)) << Name(dtype) << " " << i;
      }
    }
  }
}

TEST(Arithmetic, TakesMoreDimsThanMostTensorsHave) {
  const Shape shape = {2, 3, 2, 2, 3, 2, 2, 3, 2, 2};
  const Tensor x = Put(Tensor::Arange(shape.numel(), DType::kF32));
  const std::vector<int> reversed = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const Tensor turned = x.Reshape(shape).Permute(reversed);
  const auto sum = Doubles(Add(turned, Put(Tensor::Ones({1}))));
  const auto host = Tensor::Arange(shape.numel(), DType::kF64)
                        .Reshape(shape)
                        .Permute(reversed)
                        .ToVector<double>();
  for (size_t i = 0; i < host.size(); ++i) ASSERT_EQ(sum[i], host[i] + 1);
}

}  // namespace
}  // namespace baton::ops
