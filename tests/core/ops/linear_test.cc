// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/precision.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::Numbers;
using ::baton::testing::ToleranceOf;
using test::Put;

constexpr DType kFloating[] = {DType::kF32, DType::kF64, DType::kF16,
                               DType::kBF16};

// `got` near `want`, which was computed in f64.
void ExpectLike(const Tensor& got, const Tensor& want,
                const std::string& what) {
  ExpectNear(got, want.shape(), want.ToVector<double>(),
             ToleranceOf(got.dtype()), what + Name(got.dtype()));
}

// Widths that fill the library's packs of 16 bytes, and that do not.
TEST(LinearActivation, EqualsItsPartsInF64) {
  for (DType dtype : kFloating) {
    for (int64_t width : {5, 64}) {
      const Tensor x = Numbers({2, 9, width}, dtype, 1);
      const Tensor weight = Numbers({width + 3, width}, dtype, 2);
      const Tensor bias = Numbers({width + 3}, dtype, 3);
      const Tensor z = Linear(x.To(DType::kF64), weight.To(DType::kF64),
                              bias.To(DType::kF64));
      const auto run = [&](Activation activation) {
        return LinearActivation(activation, Put(x), Put(weight), Put(bias));
      };
      ExpectLike(run(Activation::kRelu).y, Relu(z), "relu ");
      ExpectLike(run(Activation::kSigmoid).y, Sigmoid(z), "sigmoid ");
      ExpectLike(run(Activation::kTanh).y, Tanh(z), "tanh ");
      ExpectLike(run(Activation::kGelu).y, Gelu(z), "gelu ");
      ExpectLike(run(Activation::kGelu).saved, z, "argument of gelu ");
      const Tensor plain =
          Linear(x.To(DType::kF64), weight.To(DType::kF64), Tensor());
      ExpectLike(
          LinearActivation(Activation::kRelu, Put(x), Put(weight), Tensor()).y,
          Relu(plain), "relu without bias ");
    }
  }
}

TEST(LinearActivation, TakesAnEmptyBatchAndNamesWhatDoesNotFit) {
  const Tensor weight = Put(Tensor::Zeros({2, 3}));
  EXPECT_EQ(LinearActivation(Activation::kRelu, Put(Tensor::Zeros({0, 3})),
                             weight, Tensor())
                .y.shape(),
            Shape({0, 2}));
  EXPECT_THAT(ErrorOf([&] {
                LinearActivation(Activation::kRelu, Put(Tensor::Zeros({1, 4})),
                                 weight, Tensor());
              }),
              ::testing::HasSubstr("[linear_activation] expected weight"));
}

TEST(LinearParameterGradients, AreAProductAndASum) {
  for (DType dtype : kFloating) {
    for (int64_t rows : {1, 7, 120}) {
      for (int64_t width : {3, 64}) {
        const Tensor x = Numbers({rows, width}, dtype, 1);
        const Tensor dy = Numbers({rows, width + 5}, dtype, 2);
        const auto [weight, bias] = LinearParameterGradients(Put(dy), Put(x));
        const Tensor wide = dy.To(DType::kF64);
        ExpectLike(weight, Matmul(wide.Transpose(0, 1), x.To(DType::kF64)),
                   "weight ");
        ExpectLike(bias, Sum(wide, {0}), "bias ");
      }
    }
  }
  const auto [weight, bias] = LinearParameterGradients(
      Put(Tensor::Zeros({0, 2})), Put(Tensor::Zeros({0, 3})));
  EXPECT_EQ(weight.ToVector<float>(), std::vector<float>(6, 0));
  EXPECT_EQ(bias.ToVector<float>(), std::vector<float>(2, 0));
}

// `x` as it would lie within another tensor, after `before` elements.
Tensor Within(const Tensor& x, int64_t before) {
  Tensor all = Put(Tensor::Zeros({before + x.numel()}));
  const Tensor part =
      all.Slice(0, before, before + x.numel()).Reshape(x.shape());
  part.CopyFrom(x);
  return part;
}

// Each time, and wherever the rows lie: a pipeline's are parts of a batch.
TEST(LinearParameterGradients, AreTheSameBitsWhenDeterministic) {
  SetDeterministic(true);
  for (int64_t rows : {7, 14, 35, 512}) {
    for (const auto& [in, out] : {std::pair{8, 8}, {8, 32}, {64, 24}}) {
      const Tensor x = Numbers({rows, in}, DType::kF32, 1);
      const Tensor dy = Numbers({rows, out}, DType::kF32, 2);
      const auto want = LinearParameterGradients(Put(dy), Put(x));
      for (int64_t before : {0, 4, 8, 16, 32, 0}) {
        SCOPED_TRACE(
            absl::StrCat(rows, " rows, ", in, " to ", out, " after ", before));
        const auto got =
            LinearParameterGradients(Within(dy, before), Within(x, before));
        EXPECT_TRUE(BitEqual(got.weight, want.weight)) << "weight";
        EXPECT_TRUE(BitEqual(got.bias, want.bias)) << "bias";
      }
    }
  }
  SetDeterministic(false);
}

}  // namespace
}  // namespace baton::ops
