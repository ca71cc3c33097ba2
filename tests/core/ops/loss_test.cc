// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using test::TestDevice;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CrossEntropy, IsTheMeanNegativeLogLikelihood) {
  const Tensor logits = Put<float>({1, 2, 3, 0, 0, 0}, {2, 3});
  const Tensor labels = Put<int64_t>({2, 0});
  const auto [loss, log_softmax, divisor] = CrossEntropy(logits, labels);
  EXPECT_NEAR(loss.Item(), (0.40760596 + std::log(3.0)) / 2, 1e-6);
  const auto dx =
      CrossEntropyBackward(Put(Tensor::Scalar(2)), log_softmax, labels, divisor)
          .ToVector<float>();
  EXPECT_NEAR(dx[2], 0.66524096 - 1, 1e-6);
  EXPECT_NEAR(dx[3], 1 / 3.0 - 1, 1e-6);
  EXPECT_NEAR(dx[4], 1 / 3.0, 1e-6);
}

// A GPU's labels are not read back: what is wrong shows in the loss.
TEST(CrossEntropy, LabelsOutOfRangeThrowOrGiveNaN) {
  const Tensor logits = Put(Tensor::Ones({2, 3}));
  const Tensor high = Put<int64_t>({0, 3}), low = Put<int64_t>({-1, 0});
  if (TestDevice().is_cpu()) {
    EXPECT_EQ(ErrorOf([&] { CrossEntropy(logits, high); }),
              "[cross_entropy] label 3 at 1 is outside [0, 3)");
    EXPECT_THAT(ErrorOf([&] { CrossEntropy(logits, low); }),
                HasSubstr("label -1"));
    return;
  }
  for (const Tensor& labels : {high, low}) {
    const auto [loss, log_softmax, divisor] = CrossEntropy(logits, labels);
    EXPECT_TRUE(std::isnan(loss.Item()));
    const auto dx = CrossEntropyBackward(Put(Tensor::Scalar(1)), log_softmax,
                                         labels, divisor)
                        .ToVector<float>();
    const size_t bad = labels.Select(0, 0).Item() < 0 ? 0 : 3;
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(std::isnan(dx[i]), i >= bad && i < bad + 3) << i;
    }
  }
}

TEST(CrossEntropy, WrongArgumentsAreNamed) {
  const Tensor logits = Put(Tensor::Ones({2, 3}));
  EXPECT_THAT(ErrorOf([&] { CrossEntropy(logits, Put(Tensor::Arange(3))); }),
              StartsWith("[cross_entropy] expected labels [2]"));
  EXPECT_THAT(ErrorOf([&] {
                CrossEntropy(logits, Put<float>({0, 1}));
              }),
              StartsWith("[cross_entropy]"));
}

TEST(CrossEntropy, AgreesWithItsPartsInEveryDType) {
  Generator generator(6);
  const Tensor wide = Put(RandNormal({120, 1000}, generator, DType::kF64));
  const Tensor labels = Put(RandInt(0, 1000, {120}, generator));
  const Tensor marks = OneHot(labels, 1000).To(DType::kF64);
  const Tensor log_y = LogSoftmax(wide, 1);
  const double want = -Sum(Mul(log_y, marks)).Item() / 120;
  const Tensor gradient = MulScalar(Sub(Exp(log_y), marks), 1.0 / 120);
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    const double rtol = dtype == DType::kF64   ? 1e-9
                        : dtype == DType::kF32 ? 1e-5
                                               : 3e-2;
    const auto [loss, log_softmax, divisor] =
        CrossEntropy(wide.To(dtype), labels);
    EXPECT_NEAR(loss.Item(), want, rtol * want) << Name(dtype);
    const Tensor one = Put(Tensor::Scalar(1, dtype));
    EXPECT_TRUE(AllClose(
        CrossEntropyBackward(one, log_softmax, labels, divisor).To(DType::kF64),
        gradient, 2 * rtol, 1e-3 * rtol))
        << Name(dtype);
  }
}

// Logits with all options at once, and what follows from the definition, in
// f64.
struct LabelledRows {
  static constexpr double kSmoothing = 0.3;

  LabelledRows(const Shape& shape, Generator& generator)
      : x(Put(RandNormal(shape, generator, DType::kF64))),
        weight(Put(RandUniform({shape[1]}, 0.5, 2, generator).To(DType::kF64))),
        labels(Put(RandInt(0, shape[1], {shape[0]}, generator))) {
    labels.Slice(0, 1, shape[0], 3).Fill(-7);
    const Tensor ignored = Less(labels, Put(Tensor::Scalar(0, DType::kI64)));
    const Tensor safe = MaskedFill(labels, ignored, 0);
    const Tensor hits = OneHot(safe, shape[1]).To(DType::kF64);
    const Tensor targets =
        AddScalar(MulScalar(hits, 1 - kSmoothing),
                  kSmoothing / static_cast<double>(shape[1]));
    const Tensor wanted =
        MaskedFill(Mul(targets, weight), ignored.Unsqueeze(1), 0);
    const Tensor log_y = LogSoftmax(x, 1);
    losses = Neg(Sum(Mul(log_y, wanted), {1}));
    slopes = Sub(Mul(Exp(log_y), Sum(wanted, {1}, true)), wanted);
    shares = MaskedFill(Sum(Mul(hits, weight), {1}), ignored, 0);
  }
  ClassLossOptions Options(DType dtype, Reduction reduction) const {
    return {.weight = weight.To(dtype),
            .ignore_index = -7,
            .label_smoothing = kSmoothing,
            .reduction = reduction};
  }

  Tensor x, weight, labels;
  Tensor losses, slopes, shares;  // shares: of the rows in a mean
};

// Rows of a thread, of a warp and of a block.
TEST(CrossEntropy, WithOptionsAgreesWithItsPartsInRowsOfAnyWidth) {
  Generator generator(8);
  for (const Shape& shape :
       {Shape({300, 7}), Shape({40, 64}), Shape({30, 1000}), Shape({3, 5003}),
        Shape({5, 1})}) {
    const LabelledRows rows(shape, generator);
    const Tensor dy = Put(RandNormal({shape[0]}, generator, DType::kF64));
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      const double tolerance = dtype == DType::kF64   ? 1e-10
                               : dtype == DType::kF32 ? 1e-4
                                                      : 5e-2;
      const auto near = [&](const Tensor& got, const Tensor& wanted) {
        EXPECT_TRUE(AllClose(got.To(DType::kF64), wanted, tolerance, tolerance))
            << Name(dtype) << shape.ToString();
      };
      const auto options = rows.Options(dtype, Reduction::kNone);
      const auto each = CrossEntropy(rows.x.To(dtype), rows.labels, options);
      near(each.loss, rows.losses);
      near(CrossEntropyBackward(dy.To(dtype), each.log_softmax, rows.labels,
                                each.divisor, options),
           Mul(rows.slopes, dy.Unsqueeze(1)));
      const auto mean = CrossEntropy(rows.x.To(dtype), rows.labels,
                                     rows.Options(dtype, Reduction::kMean));
      near(mean.loss, Div(Sum(rows.losses), Sum(rows.shares)));
      near(mean.divisor, Sum(rows.shares));
    }
  }
}

// Its gradients are those of the sum over the rows that count, and no NaN.
TEST(CrossEntropy, OfNoRowThatCountsIsNaNWithoutGradients) {
  const Tensor logits = Put(Tensor::Ones({2, 3}));
  const Tensor labels = Put<int64_t>({-100, -100});
  const auto [loss, log_softmax, divisor] = CrossEntropy(logits, labels);
  EXPECT_TRUE(std::isnan(loss.Item()));
  for (float slope : CrossEntropyBackward(Put(Tensor::Scalar(1)), log_softmax,
                                          labels, divisor)
                         .ToVector<float>()) {
    EXPECT_EQ(slope, 0);
  }
}

TEST(MseLoss, AgreesWithItsParts) {
  Generator generator(3);
  const Tensor x = Put(RandNormal({300, 501}, generator));
  const Tensor t = Put(RandNormal({300, 501}, generator));
  const Tensor difference = Sub(x, t);
  const double want = Mean(Mul(difference, difference)).Item();
  EXPECT_NEAR(MseLoss(x, t).Item(), want, 1e-5);
  EXPECT_NEAR(MseLoss(x.Transpose(0, 1), t.Transpose(0, 1)).Item(), want, 1e-5);
  const Tensor dx = MseLossBackward(Put(Tensor::Scalar(3)), x, t);
  EXPECT_TRUE(
      AllClose(dx, MulScalar(difference, 6.0 / (300 * 501)), 1e-5, 1e-10));
  EXPECT_THAT(ErrorOf([&] {
                MseLoss(x, Put(Tensor::Ones({300, 1})));
              }),
              StartsWith("[mse_loss]"));
}

}  // namespace
}  // namespace baton::ops
