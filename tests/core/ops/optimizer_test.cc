// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

// Steps of many parameters against the formulas, one element after the other in
// double. tests/optim/golden_test.cc compares with PyTorch.
namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using ::testing::StartsWith;
using Values = std::vector<double>;

// More parameters than one launch takes.
std::vector<int64_t> Sizes() {
  std::vector<int64_t> sizes = {20'003, 1, 4096, 64, 3, 0, 4099};
  for (int64_t i = 0; i < 600; ++i) sizes.push_back(1 + i % 5);
  return sizes;
}

double Wave(int64_t seed, int64_t i) {
  return std::sin(static_cast<double>(seed * 31 + i) * 0.7);
}

// `size` numbers that begin `offset` elements into their memory.
Tensor Waves(int64_t seed, int64_t size, DType dtype, int64_t offset = 0) {
  Values values;
  for (int64_t i = -offset; i < size; ++i) values.push_back(Wave(seed, i));
  return Put(values).To(dtype).Slice(0, offset, offset + size);
}

Tensor Zeros(int64_t size, DType dtype) {
  return Put(Tensor::Zeros({size}, {.dtype = dtype}));
}

Tensor Number(double value, DType dtype) {
  return Put(Tensor::Scalar(value, dtype));
}

Values ValuesOf(const Tensor& x) {
  return x.To(DType::kF64).ToVector<double>();
}

void ExpectNear(const Tensor& got, const Values& expected, double tolerance,
                const std::string& what) {
  const Values values = ValuesOf(got);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i],
                tolerance * std::max(1.0, std::abs(expected[i])))
        << what << " at " << i;
  }
}

double ToleranceOf(DType dtype) { return dtype == DType::kF64 ? 1e-13 : 2e-6; }

struct SlowSgd {
  SgdRule o;
  void Step(Values& value, const Values& grad, Values& momentum,
            bool first) const {
    for (size_t i = 0; i < value.size(); ++i) {
      const double g =
          (o.maximize ? -grad[i] : grad[i]) + o.weight_decay * value[i];
      momentum[i] =
          first ? g : o.momentum * momentum[i] + (1 - o.dampening) * g;
      value[i] -= o.lr * (o.momentum == 0 ? g
                          : o.nesterov    ? g + o.momentum * momentum[i]
                                          : momentum[i]);
    }
  }
};

struct SlowAdam {
  AdamRule o;
  void Step(Values& value, const Values& grad, Values& mean, Values& variance,
            int step) const {
    for (size_t i = 0; i < value.size(); ++i) {
      double g = o.maximize ? -grad[i] : grad[i];
      if (o.decoupled_weight_decay) {
        value[i] *= 1 - o.lr * o.weight_decay;
      } else {
        g += o.weight_decay * value[i];
      }
      mean[i] = o.beta1 * mean[i] + (1 - o.beta1) * g;
      variance[i] = o.beta2 * variance[i] + (1 - o.beta2) * g * g;
      const double m = mean[i] / (1 - std::pow(o.beta1, step));
      const double v = variance[i] / (1 - std::pow(o.beta2, step));
      value[i] -= o.lr * m / (std::sqrt(v) + o.eps);
    }
  }
};

// A parameter: its gradients' dtype and that of its lowered copy, if any.
struct Kind {
  DType value, grad;
  bool lowered;
};
const Kind kKinds[] = {{DType::kF32, DType::kF32, false},
                       {DType::kF64, DType::kF64, false},
                       {DType::kF32, DType::kBF16, true},
                       {DType::kF32, DType::kF16, true}};

Tensor LoweredFor(const Kind& kind, const Tensor& value) {
  return kind.lowered ? value.To(kind.grad) : Tensor();
}

void ExpectLowered(const Tensor& lowered, const Tensor& value,
                   const std::string& what) {
  if (!lowered.defined()) return;
  EXPECT_TRUE(BitEqual(lowered, value.To(lowered.dtype()))) << what;
}

TEST(OptimizerStep, OfSgdFollowsItsFormulaForEveryKindOfParameter) {
  const SgdRule cases[] = {
      {.lr = 0.1},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01},
      {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .maximize = true},
      {.lr = 0.1, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true}};
  const std::vector<int64_t> sizes = Sizes();
  for (const SgdRule& options : cases) {
    std::vector<StepTarget> targets;
    std::vector<Values> values, momenta;
    for (size_t t = 0; t < sizes.size(); ++t) {
      const Kind& kind = kKinds[t % 4];
      const auto seed = static_cast<int64_t>(t);
      targets.push_back(
          {.value = Waves(seed, sizes[t], kind.value, seed % 3),
           .state = {options.momentum != 0 ? Zeros(sizes[t], kind.value)
                                           : Tensor()}});
      targets.back().lowered = LoweredFor(kind, targets.back().value);
      values.push_back(ValuesOf(targets.back().value));
      momenta.emplace_back(values.back().size(), 0.0);
    }
    for (int step = 1; step <= 3; ++step) {
      for (size_t t = 0; t < sizes.size(); ++t) {
        const auto seed = static_cast<int64_t>(t) + 7 * step;
        targets[t].grad = Waves(seed, sizes[t], kKinds[t % 4].grad);
        targets[t].step = step;
        SlowSgd{options}.Step(values[t], ValuesOf(targets[t].grad), momenta[t],
                              step == 1);
      }
      OptimizerStep({{targets, options}});
    }
    for (size_t t = 0; t < sizes.size(); ++t) {
      const std::string what = absl::StrCat("parameter ", t);
      ExpectNear(targets[t].value, values[t],
                 ToleranceOf(targets[t].value.dtype()), what);
      ExpectLowered(targets[t].lowered, targets[t].value, what);
    }
  }
}

TEST(OptimizerStep, OfAdamFollowsItsFormulaForEveryKindOfParameter) {
  const AdamRule cases[] = {
      {.lr = 0.01},
      {.lr = 0.01, .weight_decay = 0.1, .maximize = true},
      {.lr = 0.01, .weight_decay = 0.1, .decoupled_weight_decay = true}};
  const std::vector<int64_t> sizes = Sizes();
  for (const AdamRule& options : cases) {
    std::vector<StepTarget> targets;
    std::vector<Values> values, means, variances;
    for (size_t t = 0; t < sizes.size(); ++t) {
      const Kind& kind = kKinds[t % 4];
      const auto seed = static_cast<int64_t>(t);
      targets.push_back({.value = Waves(seed, sizes[t], kind.value, seed % 3),
                         .state = {Zeros(sizes[t], kind.value),
                                   Zeros(sizes[t], kind.value)}});
      targets.back().lowered = LoweredFor(kind, targets.back().value);
      values.push_back(ValuesOf(targets.back().value));
      means.emplace_back(values.back().size(), 0.0);
      variances.emplace_back(values.back().size(), 0.0);
    }
    for (int step = 1; step <= 3; ++step) {
      for (size_t t = 0; t < sizes.size(); ++t) {
        const auto seed = static_cast<int64_t>(t) + 7 * step;
        targets[t].grad = Waves(seed, sizes[t], kKinds[t % 4].grad);
        targets[t].step = step;
        SlowAdam{options}.Step(values[t], ValuesOf(targets[t].grad), means[t],
                               variances[t], step);
      }
      OptimizerStep({{targets, options}});
    }
    for (size_t t = 0; t < sizes.size(); ++t) {
      const std::string what = absl::StrCat("parameter ", t);
      ExpectNear(targets[t].value, values[t],
                 5 * ToleranceOf(targets[t].value.dtype()), what);
      ExpectLowered(targets[t].lowered, targets[t].value, what);
    }
  }
}

TEST(OptimizerStep, OfAmsgradKeepsTheGreatestVariance) {
  StepTarget target{.value = Put<float>({0, 0}),
                    .state = {Zeros(2, DType::kF32), Zeros(2, DType::kF32),
                              Zeros(2, DType::kF32)}};
  const AdamRule rule{.lr = 1, .beta2 = 0.5, .amsgrad = true};
  target.grad = Put<float>({2, 1});
  OptimizerStep({{{target}, rule}});
  target.grad = Put<float>({0, 3});
  target.step = 2;
  OptimizerStep({{{target}, rule}});
  EXPECT_EQ(target.state[1].ToVector<float>(), (std::vector<float>{1, 4.75}));
  EXPECT_EQ(target.state[2].ToVector<float>(), (std::vector<float>{2, 4.75}));
}

TEST(OptimizerStep, ObeysARateAndCountsItsSteps) {
  const Tensor rate = Number(0.5, DType::kF64);
  const Tensor count = Number(3, DType::kI64);
  const StepTarget sgd{.value = Put<float>({1, 2}),
                       .grad = Put<float>({2, 2}),
                       .rate = rate,
                       .count = count};
  OptimizerStep({{{sgd}, SgdRule{.lr = 100}}});
  EXPECT_EQ(sgd.value.ToVector<float>(), (std::vector<float>{0, 1}));
  EXPECT_EQ(count.Item(), 4);
  rate.Fill(0.25);
  const auto adam = [] {
    return StepTarget{.value = Put<double>({1}),
                      .grad = Put<double>({0.3}),
                      .state = {Zeros(1, DType::kF64), Zeros(1, DType::kF64)},
                      .step = 5};
  };
  StepTarget counted = adam();
  const StepTarget told = adam();
  counted.rate = rate;
  counted.count = count;
  OptimizerStep({{{counted}, AdamRule{.lr = 100, .weight_decay = 0.1}},
                 {{told}, AdamRule{.lr = 0.25, .weight_decay = 0.1}}});
  EXPECT_TRUE(BitEqual(counted.value, told.value));
  EXPECT_EQ(count.Item(), 5);
}

TEST(OptimizerStep, ClipsGradientsAndLeavesThemAsTheyAre) {
  const StepTarget target{.value = Put<float>({0, 0, 0, 0}),
                          .grad = Put<float>({3, -3, 0.5f, std::nanf("")}),
                          .scale = Number(0.5, DType::kF64)};
  OptimizerStep({{{target}, SgdRule{.lr = 1}}}, 2);
  const std::vector<float> value =
      target.value.To(Device::Cpu()).ToVector<float>();
  EXPECT_EQ(value[0], -1);
  EXPECT_EQ(value[1], 1);
  EXPECT_EQ(value[2], -0.25f);
  EXPECT_TRUE(std::isnan(value[3]));
  EXPECT_EQ(target.grad.To(Device::Cpu()).ToVector<float>()[0], 3);
}

TEST(OptimizerStep, TakesChannelsLast) {
  const Tensor start =
      Waves(1, 2 * 3 * 4 * 5, DType::kF32).Reshape({2, 3, 4, 5});
  const Tensor grad =
      Waves(2, 2 * 3 * 4 * 5, DType::kF32).Reshape({2, 3, 4, 5});
  const StepTarget plain{.value = start.Clone(), .grad = grad};
  const StepTarget last{
      .value = start.Contiguous(MemoryFormat::kChannelsLast).Clone(),
      .grad = grad,
      .lowered =
          start.To(DType::kBF16).Contiguous(MemoryFormat::kChannelsLast)};
  OptimizerStep({{{plain, last}, SgdRule{.lr = 0.1}}});
  EXPECT_TRUE(BitEqual(plain.value, last.value));
  EXPECT_TRUE(BitEqual(last.lowered, plain.value.To(DType::kBF16)));
}

TEST(OptimizerStep, BeginsFromWhatOthersWroteToTheLoweredCopy) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    // 1.0001 is 1 in both; of what was written NaN and -0 are not to be missed.
    StepTarget target{.value = Put<float>({1.0001f, 1.0001f, 1, 0, 3}),
                      .grad = Put<float>({0, 0, 0, 0, 1})};
    target.lowered = Put<float>({1, 8, std::nanf(""), -0.0f, 3}).To(dtype);
    OptimizerStep({{{target}, SgdRule{.lr = 0.5}}});
    const std::vector<float> value =
        target.value.To(Device::Cpu()).ToVector<float>();
    EXPECT_EQ(value[0], 1.0001f);
    EXPECT_EQ(value[1], 8);
    EXPECT_TRUE(std::isnan(value[2]));
    EXPECT_TRUE(std::signbit(value[3]));
    EXPECT_EQ(value[4], 2.5f);
    EXPECT_EQ(target.lowered.To(DType::kF32).ToVector<float>()[4], 2.5f);
  }
}

TEST(OptimizerStep, RefusesWhatDoesNotFitBeforeItWrites) {
  const StepTarget good{
      .value = Put<float>({1}),
      .grad = Put<float>({1}),
      .state = {Zeros(1, DType::kF32), Zeros(1, DType::kF32)}};
  const auto error_of = [&](StepTarget bad) {
    if (!bad.value.defined()) bad.value = Put<float>({1, 2});
    if (!bad.grad.defined()) bad.grad = Put<float>({1, 2});
    return ErrorOf([&] {
      OptimizerStep({{{good}, AdamRule()}, {{bad}, SgdRule()}});
    });
  };
  EXPECT_EQ(error_of({}), "no error");
  const Tensor value = good.value.Clone();
  EXPECT_THAT(error_of({.grad = Put<double>({1, 2})}),
              StartsWith("[optimizer] expected a gradient like the parameter"));
  EXPECT_THAT(error_of({.value = Put<double>({1, 2}),
                        .grad = Put<double>({1, 2}).To(DType::kBF16)}),
              StartsWith("[optimizer] expected a gradient like the parameter"));
  EXPECT_THAT(error_of({.lowered = Put<float>({1, 2})}),
              StartsWith("[optimizer] expected the lowered copy"));
  EXPECT_THAT(error_of({.rate = Put<float>({1})}),
              StartsWith("[optimizer] expected a rate of f64"));
  EXPECT_THAT(error_of({.count = Put<float>({1})}),
              StartsWith("[optimizer] expected a count of i64"));
  EXPECT_TRUE(BitEqual(good.value, value));
}

}  // namespace
}  // namespace baton::ops
