// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/ops/conv.h"
#include "core/ops/indexing.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/precision.h"
#include "core/random.h"
#include "tests/support/test_device.h"

// A batch that is one small batch many times over gives the small batch's
// results many times, and sums that are so many times as large: whatever sizes
// of ResNet50's layers do to indices, grids and choices of algorithms.
namespace baton {
namespace {

constexpr int64_t kFew = 60;

struct Batches {
  int times;
  bool tf32;
  friend void PrintTo(const Batches& batches, std::ostream* out) {
    *out << batches.times << "_times" << (batches.tf32 ? "_tf32" : "");
  }
};

class GpuLargeBatches : public ::testing::TestWithParam<Batches> {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
    AllowTf32(GetParam().tf32);
  }
  void TearDown() override { AllowTf32(false); }
  int times() const { return GetParam().times; }

  Tensor Few(const Shape& shape) {
    const Tensor x = RandNormal(shape, generator_);
    return test::Put(
        shape.rank() == 4 ? x.Contiguous(MemoryFormat::kChannelsLast) : x);
  }
  Tensor Many(const Tensor& few) const {
    return ops::Cat(std::vector<Tensor>(static_cast<size_t>(times()), few), 0);
  }

  // By the sums of squares, which a GPU has in no time. TF32 rounds to 2^-11,
  // and a ReLU of the batch norm's ends a few elements elsewhere.
  void ExpectClose(const Tensor& actual, const Tensor& expected, double factor,
                   const std::string& what) const {
    const bool exact = !Tf32Allowed() && !relu_;
    ASSERT_EQ(actual.shape(), expected.shape()) << what;
    const Tensor wanted = ops::MulScalar(expected, factor);
    const Tensor off = ops::Sub(actual, wanted);
    const double squares = ops::Sum(ops::Mul(wanted, wanted)).Item();
    EXPECT_LE(std::sqrt(ops::Sum(ops::Mul(off, off)).Item() / squares),
              exact ? 1e-4 : 3e-3)
        << what;
  }
  // Rows: the first, the last, and some between.
  void ExpectRows(const Tensor& many, const Tensor& few,
                  const std::string& what) const {
    for (int64_t begin :
         {int64_t{0}, (times() / 2) * kFew, (times() - 1) * kFew})
      ExpectClose(many.Slice(0, begin, begin + kFew), few, 1,
                  absl::StrCat(what, " from row ", begin));
  }

  bool relu_ = false;
  Generator generator_{3};
};

struct Layer {
  int64_t in, out, kernel, stride, size;
};
constexpr Layer kLayers[] = {
    {3, 64, 7, 2, 128},   {64, 64, 1, 1, 32},   {64, 64, 3, 1, 32},
    {64, 256, 1, 1, 32},  {256, 64, 1, 1, 32},  {256, 128, 1, 1, 32},
    {128, 128, 3, 2, 32}, {128, 512, 1, 1, 16}, {256, 512, 1, 2, 32},
    {512, 128, 1, 1, 16}, {128, 128, 3, 1, 16}, {512, 256, 1, 1, 16},
    {256, 256, 3, 2, 16}, {256, 1024, 1, 1, 8}, {512, 1024, 1, 2, 16},
    {1024, 256, 1, 1, 8}, {256, 256, 3, 1, 8},  {1024, 512, 1, 1, 8},
    {512, 512, 3, 2, 8},  {512, 2048, 1, 1, 4}, {1024, 2048, 1, 2, 8},
    {2048, 512, 1, 1, 4}, {512, 512, 3, 1, 4},
};

TEST_P(GpuLargeBatches, Convolve) {
  for (const auto& [in, out, kernel, stride, size] : kLayers) {
    const std::string what =
        absl::StrCat(in, " to ", out, ", ", kernel, "x", kernel, " /", stride,
                     " of ", size, "x", size);
    const int64_t pad = kernel / 2;
    const ops::Conv2dOptions options = {.stride = {stride, stride},
                                        .padding = {pad, pad}};
    const Tensor x = Few({kFew, in, size, size});
    const Tensor weight = Few({out, in, kernel, kernel});
    const Tensor y = ops::Conv2d(x, weight, Tensor(), options);
    const Tensor dy = Few(y.shape());
    const Tensor many_x = Many(x), many_dy = Many(dy);
    const MemoryFormat order = MemoryFormat::kChannelsLast;
    ExpectRows(ops::Conv2d(many_x, weight, Tensor(), options), y,
               absl::StrCat(what, ", forward"));
    const Tensor dx = ops::Conv2dBackwardInput(dy, weight, x.shape(), options);
    ExpectRows(
        ops::Conv2dBackwardInput(many_dy, weight, many_x.shape(), options), dx,
        absl::StrCat(what, ", input"));
    const Tensor before = Few(x.shape());
    const Tensor sum = Many(before);
    ops::Conv2dAddBackwardInput(sum, many_dy, weight, options);
    ExpectRows(sum, ops::Add(before, dx),
               absl::StrCat(what, ", added to what was there"));
    ExpectClose(
        ops::Conv2dBackwardWeight(many_dy, many_x, weight.shape(), options,
                                  order),
        ops::Conv2dBackwardWeight(dy, x, weight.shape(), options, order),
        times(), absl::StrCat(what, ", weight"));
  }
}

TEST_P(GpuLargeBatches, Normalise) {
  relu_ = true;
  for (const auto& [in, out, kernel, stride, size] : kLayers) {
    const int64_t s = size / stride;
    for (bool residual : {false, true}) {
      const std::string what =
          absl::StrCat(out, " of ", s, "x", s, residual ? " and residual" : "");
      const Tensor x = Few({kFew, out, s, s}), dy = Few(x.shape());
      const Tensor other = residual ? Few(x.shape()) : Tensor();
      const Tensor gamma = Few({out}), beta = Few({out});
      const ops::BatchNormOptions options = {.relu = true};
      const auto few = ops::BatchNormTrain(x, gamma, beta, other, Tensor(),
                                           Tensor(), options);
      const Tensor many_x = Many(x);
      const auto many = ops::BatchNormTrain(many_x, gamma, beta,
                                            residual ? Many(other) : Tensor(),
                                            Tensor(), Tensor(), options);
      ExpectRows(many.y, few.y, absl::StrCat(what, ", forward"));
      const auto few_d =
          ops::BatchNormBackward(dy, x, gamma, few, residual, options);
      const auto many_d = ops::BatchNormBackward(Many(dy), many_x, gamma, many,
                                                 residual, options);
      ExpectRows(many_d.dx, few_d.dx, absl::StrCat(what, ", input"));
      if (residual)
        ExpectRows(many_d.dresidual, few_d.dresidual,
                   absl::StrCat(what, ", residual"));
      ExpectClose(many_d.dgamma, few_d.dgamma, times(),
                  absl::StrCat(what, ", gamma"));
      ExpectClose(many_d.dbeta, few_d.dbeta, times(),
                  absl::StrCat(what, ", beta"));
    }
  }
}

TEST_P(GpuLargeBatches, Pool) {
  const Tensor x = Few({kFew, 64, 64, 64});
  const ops::Pool2dOptions options = {
      .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const auto few = ops::MaxPool2d(x, options);
  const Tensor dy = Few(few.y.shape());
  const Tensor many_x = Many(x);
  const auto many = ops::MaxPool2d(many_x, options);
  ExpectRows(many.y, few.y, "maximum");
  ExpectRows(
      ops::MaxPool2dBackward(Many(dy), many.workspace, many_x.shape(), options),
      ops::MaxPool2dBackward(dy, few.workspace, x.shape(), options),
      "its gradient");
  const Tensor last = Few({kFew, 2048, 4, 4}), mean = Few({kFew, 2048, 1, 1});
  const Tensor many_last = Many(last);
  ExpectRows(ops::AdaptiveAvgPool2d(many_last, 1, 1),
             ops::AdaptiveAvgPool2d(last, 1, 1), "mean");
  ExpectRows(ops::AdaptiveAvgPool2dBackward(Many(mean), many_last),
             ops::AdaptiveAvgPool2dBackward(mean, last), "its gradient");
}

TEST_P(GpuLargeBatches, MultiplyAndSum) {
  const Tensor x = Few({kFew, 2048}), weight = Few({1000, 2048}),
               bias = Few({1000}), dy = Few({kFew, 1000});
  const Tensor many_x = Many(x), many_dy = Many(dy);
  ExpectRows(ops::Linear(many_x, weight, bias), ops::Linear(x, weight, bias),
             "linear");
  ExpectRows(ops::Matmul(many_dy, weight), ops::Matmul(dy, weight), "input");
  const auto few = ops::LinearParameterGradients(dy, x);
  const auto many = ops::LinearParameterGradients(many_dy, many_x);
  ExpectClose(many.weight, few.weight, times(), "weight");
  ExpectClose(many.bias, few.bias, times(), "bias");
  ExpectClose(ops::Mean(ops::Mul(many_dy, many_dy)),
              ops::Mean(ops::Mul(dy, dy)), 1, "mean");
  ExpectClose(ops::Sum(many_dy, {0}), ops::Sum(dy, {0}), times(), "sum");
}

INSTANTIATE_TEST_SUITE_P(Batches, GpuLargeBatches,
                         ::testing::Values(Batches{8, false}, Batches{8, true},
                                           Batches{16, true},
                                           Batches{32, true}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace baton
