// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using ::testing::StartsWith;

using Function = Tensor (*)(const Tensor&);
using Gradient = Tensor (*)(const Tensor&, const Tensor&);
using Scalar = double (*)(double);

double SlowGelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

struct Case {
  const char* name;
  Function forward;
  Gradient backward;
  bool saves_input;
  Scalar slow;
};
const Case kCases[] = {
    {"relu", Relu, ReluBackward, false, [](double x) { return x > 0 ? x : 0; }},
    {"sigmoid", Sigmoid, SigmoidBackward, false,
     [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", Tanh, TanhBackward, false, [](double x) { return std::tanh(x); }},
    {"gelu", Gelu, GeluBackward, true, SlowGelu},
    {"silu", Silu, SiluBackward, true,
     [](double x) { return x / (1 + std::exp(-x)); }}};

Tensor Inputs(DType dtype) {
  std::vector<double> values;
  for (int i = -500; i <= 500; ++i) values.push_back(i / 50.0 + 0.001);
  return Put(values).To(dtype);
}

TEST(Activation, MatchesTheDefinitionInEveryFloatingDType) {
  const std::pair<DType, double> tolerances[] = {{DType::kF32, 5e-7},
                                                 {DType::kF64, 1e-14},
                                                 {DType::kF16, 5e-3},
                                                 {DType::kBF16, 4e-2}};
  for (const Case& c : kCases) {
    for (const auto& [dtype, tolerance] : tolerances) {
      const Tensor x = Inputs(dtype);
      const auto in = x.To(DType::kF64).ToVector<double>();
      const auto out = c.forward(x).To(DType::kF64).ToVector<double>();
      for (size_t i = 0; i < in.size(); ++i) {
        const double want = c.slow(in[i]);
        EXPECT_NEAR(out[i], want, tolerance * std::max(1., std::fabs(want)))
            << c.name << " " << Name(dtype) << " of " << in[i];
      }
    }
  }
}

TEST(Activation, GradientsMatchFiniteDifferences) {
  constexpr double kStep = 1e-6;
  const Tensor x = Inputs(DType::kF64);
  const auto in = x.ToVector<double>();
  const Tensor dy =
      Tensor::Full(x.shape(), 2, {.dtype = DType::kF64, .device = x.device()});
  for (const Case& c : kCases) {
    const Tensor saved = c.saves_input ? x : c.forward(x);
    const auto dx = c.backward(dy, saved).ToVector<double>();
    for (size_t i = 0; i < in.size(); ++i) {
      const double slope =
          (c.slow(in[i] + kStep) - c.slow(in[i] - kStep)) / (2 * kStep);
      EXPECT_NEAR(dx[i], 2 * slope, 1e-7) << c.name << " at " << in[i];
    }
  }
}

TEST(Activation, TailsAndNanPass) {
  const Tensor x = Put<float>({INFINITY, -INFINITY, NAN});
  for (const Case& c : kCases) {
    EXPECT_TRUE(std::isnan(c.forward(x).ToVector<float>()[2])) << c.name;
  }
  EXPECT_EQ(Sigmoid(x).ToVector<float>()[0], 1);
  EXPECT_EQ(Sigmoid(x).ToVector<float>()[1], 0);
  EXPECT_EQ(Tanh(x).ToVector<float>()[1], -1);
}

TEST(Activation, WrongArgumentsNameTheOp) {
  const Tensor i = Put(Tensor::Arange(3));
  const Tensor x = Put(Tensor::Ones({3}));
  EXPECT_EQ(ErrorOf([&] { Relu(i); }),
            "[relu] expected a floating dtype, got i64");
  EXPECT_THAT(ErrorOf([&] { ReluBackward(x, Put(Tensor::Ones({4}))); }),
              StartsWith("[relu_backward]"));
  EXPECT_THAT(ErrorOf([&] { Gelu(Tensor()); }), StartsWith("[gelu]"));
}

TEST(Dropout, KeepsTheMeanAndItsMask) {
  Generator generator(5);
  const Tensor x = Put(Tensor::Ones({100'000}));
  const auto [y, mask] = Dropout(x, 0.25, generator);
  EXPECT_NEAR(Mean(y).Item(), 1, 0.01);
  EXPECT_NEAR(Sum(mask).Item() / 100'000, 0.75, 0.01);
  EXPECT_EQ(DropoutBackward(x, mask, 0.25).ToVector<float>(),
            y.ToVector<float>());
  EXPECT_EQ(Sum(Dropout(x, 1, generator).y).Item(), 0);
  EXPECT_EQ(Sum(Dropout(x, 0, generator).y).Item(), 100'000);
  EXPECT_THAT(ErrorOf([&] { Dropout(x, 1.5, generator); }),
              StartsWith("[dropout]"));
}

TEST(Dropout, HasOneMaskForEveryDeviceAndMemoryOrder) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Tensor x = Put(Tensor::Full({3, 5, 7, 9}, 2)).To(dtype);
    Generator a(11), b(11), c(11);
    const auto [y, mask] = Dropout(x, 0.5, a);
    const auto last =
        Dropout(x.Contiguous(MemoryFormat::kChannelsLast), 0.5, b);
    const Tensor host = RandBernoulli(x.shape(), 0.5, c);
    EXPECT_EQ(mask.ToVector<bool>(), host.ToVector<bool>()) << Name(dtype);
    EXPECT_EQ(last.mask.ToVector<bool>(), host.ToVector<bool>());
    const Tensor expected = MulScalar(host.To(DType::kF64), 4);
    const auto values = expected.ToVector<double>();
    EXPECT_EQ(y.To(DType::kF64).ToVector<double>(), values) << Name(dtype);
    EXPECT_EQ(last.y.To(DType::kF64).ToVector<double>(), values);
  }
}

}  // namespace
}  // namespace baton::ops
