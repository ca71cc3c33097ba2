// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/layer_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using ::testing::HasSubstr;

constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kF16,
                             DType::kBF16};

struct Rows {
  Tensor x, gamma, beta, dy;  // f64
  Tensor normal, factor;      // (x - mean) / stddev and 1 / stddev
};

// x [rows, width] whose mean is large beside its spread.
Rows MakeRows(int64_t rows, int64_t width, double eps) {
  Generator generator(3);
  const auto random = [&](const Shape& shape) {
    return Put(RandNormal(shape, generator, DType::kF64).To(DType::kBF16))
        .To(DType::kF64);
  };
  Rows r = {AddScalar(random({rows, width}), 8),
            random({width}),
            random({width}),
            random({rows, width}),
            {},
            {}};
  r.x = r.x.To(DType::kBF16).To(DType::kF64);
  const Tensor centered = Sub(r.x, Mean(r.x, {1}, true));
  const Tensor variance = Mean(Mul(centered, centered), {1}, true);
  r.factor = PowScalar(AddScalar(variance, eps), -0.5);
  r.normal = Mul(centered, r.factor);
  return r;
}

void ExpectNear(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.shape(), want.shape());
  const Tensor distance = Abs(Sub(got.To(DType::kF64), want));
  const double largest = Max(Abs(want).Flatten(), 0).values.Item();
  EXPECT_LT(Max(distance.Flatten(), 0).values.Item(),
            tolerance * (1 + largest));
}

double ToleranceOf(DType dtype) {
  return dtype == DType::kF64 ? 1e-10 : IsHalf(dtype) ? 6e-3 : 2e-5;
}

// Rows of a few threads, of a warp and of a block; whole packs and not.
TEST(LayerNorm, AgreesWithTheDefinitionInEveryDTypeAndWidth) {
  constexpr double kEps = 1e-5;
  const std::vector<std::pair<int64_t, int64_t>> extents = {
      {300, 7}, {70, 96}, {33, 768}, {3, 5003}, {5, 1}};
  for (const auto& [rows, width] : extents) {
    const Rows r = MakeRows(rows, width, kEps);
    const Tensor want = Add(Mul(r.normal, r.gamma), r.beta);
    const Tensor g = Mul(r.dy, r.gamma);
    const Tensor along = Mean(Mul(g, r.normal), {1}, true);
    const Tensor dx =
        Mul(r.factor, Sub(Sub(g, Mean(g, {1}, true)), Mul(r.normal, along)));
    for (DType dtype : kFloats) {
      SCOPED_TRACE(::testing::Message() << Name(dtype) << " " << width);
      const Tensor x = r.x.To(dtype), gamma = r.gamma.To(dtype);
      const Tensor dy = r.dy.To(dtype);
      const auto forward = LayerNorm(x, gamma, r.beta.To(dtype), kEps);
      ASSERT_EQ(forward.y.dtype(), dtype);
      ExpectNear(forward.y, want, ToleranceOf(dtype));
      ExpectNear(LayerNormBackward(dy, x, gamma, forward), dx,
                 ToleranceOf(dtype));
      const auto grads = LayerNormParameterGradients(dy, x, gamma, forward);
      // Sums of rows are f32, of terms that f16 and bf16 have exactly.
      const double of_sums = dtype == DType::kF64 ? 1e-10 : 1e-4;
      ExpectNear(grads.dgamma, Sum(Mul(r.dy, r.normal), {0}), of_sums);
      ExpectNear(grads.dbeta, Sum(r.dy, {0}), of_sums);
    }
  }
}

TEST(LayerNorm, TakesParametersOfAnotherDType) {
  const Rows r = MakeRows(4, 32, 1e-5);
  const Tensor x = r.x.To(DType::kBF16), dy = r.dy.To(DType::kBF16);
  const Tensor gamma = r.gamma.To(DType::kF32), beta = r.beta.To(DType::kF32);
  const auto forward = LayerNorm(x, gamma, beta, 1e-5);
  ExpectNear(forward.y, Add(Mul(r.normal, r.gamma), r.beta),
             ToleranceOf(x.dtype()));
  EXPECT_EQ(forward.mean.dtype(), DType::kF32);
  EXPECT_EQ(LayerNormBackward(dy, x, gamma, forward).dtype(), DType::kBF16);
  EXPECT_EQ(LayerNormParameterGradients(dy, x, gamma, forward).dgamma.dtype(),
            DType::kF32);
}

TEST(LayerNorm, ReadsStridedRowsOfSeveralAxes) {
  const Rows r = MakeRows(6, 20, 1e-5);
  const Tensor dense = r.x.Reshape({2, 3, 4, 5});
  const Tensor strided =
      dense.Permute({3, 1, 0, 2}).Contiguous().Permute({2, 1, 3, 0});
  ASSERT_FALSE(strided.IsContiguous());
  const Tensor gamma = r.gamma.Reshape({4, 5}), beta = r.beta.Reshape({4, 5});
  const auto a = LayerNorm(dense, gamma, beta, 1e-5);
  const auto b = LayerNorm(strided, gamma, beta, 1e-5);
  EXPECT_TRUE(BitEqual(a.y, b.y));
  EXPECT_EQ(a.y.shape(), dense.shape());
  EXPECT_TRUE(AllClose(a.y.Reshape({6, 20}),
                       Add(Mul(r.normal, r.gamma), r.beta), 1e-9, 1e-9));
}

TEST(LayerNorm, IsTheSameForAnyNumberOfThreads) {
  const Rows r = MakeRows(1500, 40, 1e-5);
  const Tensor x = r.x.To(DType::kF32), dy = r.dy.To(DType::kF32);
  const Tensor gamma = r.gamma.To(DType::kF32), beta = r.beta.To(DType::kF32);
  const int before = ComputeThreads();
  std::vector<Tensor> dx;
  std::vector<LayerNormGradients> grads;
  for (int threads : {1, 3}) {
    SetComputeThreads(threads);
    const auto forward = LayerNorm(x, gamma, beta, 1e-5);
    dx.push_back(LayerNormBackward(dy, x, gamma, forward));
    grads.push_back(LayerNormParameterGradients(dy, x, gamma, forward));
  }
  SetComputeThreads(before);
  EXPECT_TRUE(BitEqual(dx[0], dx[1]));
  EXPECT_TRUE(BitEqual(grads[0].dgamma, grads[1].dgamma));
  EXPECT_TRUE(BitEqual(grads[0].dbeta, grads[1].dbeta));
}

TEST(LayerNorm, OfNoRowsIsEmpty) {
  const Tensor x = Put(Tensor::Empty({0, 3})), ones = Put(Tensor::Ones({3}));
  const auto forward = LayerNorm(x, ones, ones, 1e-5);
  EXPECT_EQ(forward.y.shape(), Shape({0, 3}));
  EXPECT_EQ(LayerNormBackward(x, x, ones, forward).shape(), Shape({0, 3}));
  const auto grads = LayerNormParameterGradients(x, x, ones, forward);
  EXPECT_EQ(grads.dgamma.ToVector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(grads.dbeta.ToVector<float>(), (std::vector<float>{0, 0, 0}));
}

TEST(LayerNorm, WrongArgumentsAreNamed) {
  const auto ones = [](const Shape& shape) { return Put(Tensor::Ones(shape)); };
  const Tensor x = ones({2, 3});
  const auto text = [&](const Tensor& in, const Tensor& gamma,
                        const Tensor& beta) {
    return ErrorOf([&] { LayerNorm(in, gamma, beta, 1e-5); });
  };
  EXPECT_EQ(text(x, ones({2}), ones({2})),
            "[layer_norm] expected x to end in gamma's shape [2], got [2, 3]");
  EXPECT_THAT(text(x, ones({3}), ones({2})), HasSubstr("[layer_norm]"));
  EXPECT_THAT(text(x, ones({}), ones({})), HasSubstr("expected x"));
  EXPECT_THAT(text(x, ones({1, 2, 3}), ones({1, 2, 3})),
              HasSubstr("expected x"));
  EXPECT_THAT(text(x.To(DType::kI64), ones({3}), ones({3})),
              HasSubstr("floating"));
  const auto forward = LayerNorm(x, ones({3}), ones({3}), 1e-5);
  EXPECT_THAT(
      ErrorOf([&] { LayerNormBackward(ones({2}), x, ones({3}), forward); }),
      HasSubstr("[layer_norm_backward]"));
}

// Images of few and of many pixels, whole packs and not, of one group and more.
TEST(GroupNorm, AgreesWithTheDefinitionInEveryDTypeAndSize) {
  constexpr double kEps = 1e-5;
  struct Case {
    int64_t images, groups, channels, pixels;
  };
  for (const Case& c : {Case{3, 2, 3, 35}, Case{2, 4, 8, 256}, Case{5, 3, 1, 1},
                        Case{1, 1, 6, 1001}, Case{40, 8, 4, 16}}) {
    const int64_t rows = c.images * c.groups, width = c.channels * c.pixels;
    const int64_t all = c.groups * c.channels;
    const Rows r = MakeRows(rows, width, kEps);
    Generator generator(5);
    const Tensor gamma = Put(RandNormal({all}, generator).To(DType::kBF16));
    const Tensor beta = Put(RandNormal({all}, generator).To(DType::kBF16));
    const Shape planes = {c.images, all, c.pixels};
    const auto spread = [&](const Tensor& parameter) {
      return parameter.To(DType::kF64)
          .Reshape({1, all, 1})
          .Expand(planes)
          .Contiguous()
          .Reshape({rows, width});
    };
    const auto of_channels = [&](const Tensor& terms) {
      return Sum(terms.Reshape(planes), {0, 2});
    };
    const Tensor want = Add(Mul(r.normal, spread(gamma)), spread(beta));
    const Tensor g = Mul(r.dy, spread(gamma));
    const Tensor along = Mean(Mul(g, r.normal), {1}, true);
    const Tensor dx =
        Mul(r.factor, Sub(Sub(g, Mean(g, {1}, true)), Mul(r.normal, along)));
    for (DType dtype : kFloats) {
      SCOPED_TRACE(::testing::Message() << Name(dtype) << " " << c.pixels);
      const Tensor x = r.x.To(dtype).Reshape(planes);
      const Tensor dy = r.dy.To(dtype).Reshape(planes);
      const Tensor scale = gamma.To(dtype);
      const auto forward = GroupNorm(x, c.groups, scale, beta.To(dtype), kEps);
      ASSERT_EQ(forward.y.dtype(), dtype);
      ExpectNear(forward.y, want.Reshape(planes), ToleranceOf(dtype));
      ExpectNear(GroupNormBackward(dy, x, c.groups, scale, forward),
                 dx.Reshape(planes), ToleranceOf(dtype));
      const auto grads =
          GroupNormParameterGradients(dy, x, c.groups, scale, forward);
      const double of_sums = dtype == DType::kF64 ? 1e-10 : 1e-4;
      ExpectNear(grads.dgamma, of_channels(Mul(r.dy, r.normal)), of_sums);
      ExpectNear(grads.dbeta, of_channels(r.dy), of_sums);
    }
  }
}

TEST(GroupNorm, ReadsChannelsLastImagesAndIsTheSameForAnyNumberOfThreads) {
  const Rows r = MakeRows(8, 60, 1e-5);
  const Tensor x = r.x.To(DType::kF32).Reshape({4, 6, 4, 5});
  const Tensor dy = r.dy.To(DType::kF32).Reshape({4, 6, 4, 5});
  const Tensor ones = Put(Tensor::Ones({6})), zeros = Put(Tensor::Zeros({6}));
  const auto plain = GroupNorm(x, 2, ones, zeros, 1e-5);
  const auto last = GroupNorm(x.Contiguous(MemoryFormat::kChannelsLast), 2,
                              ones, zeros, 1e-5);
  EXPECT_TRUE(BitEqual(plain.y, last.y));
  const int before = ComputeThreads();
  std::vector<LayerNormGradients> grads;
  for (int threads : {1, 3}) {
    SetComputeThreads(threads);
    grads.push_back(GroupNormParameterGradients(dy, x, 2, ones, plain));
  }
  SetComputeThreads(before);
  EXPECT_TRUE(BitEqual(grads[0].dgamma, grads[1].dgamma));
  EXPECT_TRUE(BitEqual(grads[0].dbeta, grads[1].dbeta));
}

TEST(GroupNorm, OfNoImagesOrPixelsIsEmpty) {
  const Tensor ones = Put(Tensor::Ones({4}));
  for (const Shape& shape : {Shape({0, 4, 3}), Shape({2, 4, 0})}) {
    const Tensor x = Put(Tensor::Empty(shape));
    const auto forward = GroupNorm(x, 2, ones, ones, 1e-5);
    EXPECT_EQ(forward.y.shape(), shape);
    EXPECT_EQ(GroupNormBackward(x, x, 2, ones, forward).shape(), shape);
    const auto grads = GroupNormParameterGradients(x, x, 2, ones, forward);
    EXPECT_EQ(grads.dgamma.ToVector<float>(), (std::vector<float>{0, 0, 0, 0}));
  }
}

TEST(GroupNorm, WrongArgumentsAreNamed) {
  const Tensor x = Put(Tensor::Ones({2, 4, 3}));
  const Tensor ones = Put(Tensor::Ones({4}));
  for (const int64_t groups : {0, 3, -2}) {
    EXPECT_THAT(ErrorOf([&] { GroupNorm(x, groups, ones, ones, 1e-5); }),
                HasSubstr("[group_norm] expected x [N, C, ...]"));
  }
  EXPECT_THAT(
      ErrorOf([&] { GroupNorm(x, 2, Put(Tensor::Ones({2})), ones, 1e-5); }),
      HasSubstr("gamma [C]"));
}

}  // namespace
}  // namespace baton::ops
