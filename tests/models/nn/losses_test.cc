// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "autograd/autocast.h"
#include "models/nn/loss.h"
#include "tests/support/error_of.h"
#include "tests/support/golden/golden_case.h"

namespace baton::nn {
namespace {

using ::baton::testing::ExpectSame;
using ::baton::testing::GoldenCase;
using test::ErrorOf;
using test::Put;
using ::testing::HasSubstr;

constexpr double kExact = 1e-12;
using autograd::BinaryLossOptions;
using LossFunction = std::function<Variable(const Variable&, const Variable&,
                                            Reduction, const GoldenCase&)>;

// Cases of tools/golden/losses.py, in all reductions. Where PyTorch's classes
// are along axis 1 and a loss of rows has one value a row, so has this.
void ExpectPyTorchsLoss(const std::string& name, const LossFunction& loss) {
  const std::pair<const char*, Reduction> reductions[] = {
      {"none", Reduction::kNone},
      {"sum", Reduction::kSum},
      {"mean", Reduction::kMean},
      {"batchmean", Reduction::kBatchMean}};
  for (const auto& [end, reduction] : reductions) {
    const std::string what = name + "_" + end;
    const GoldenCase golden("losses.safetensors", what);
    if (!golden["y"].defined() && reduction == Reduction::kBatchMean) continue;
    const bool labels = golden["t"].dtype() == DType::kI64;
    const Variable x = golden.Leaf("x");
    const Variable t = labels ? Variable(golden["t"]) : golden.Leaf("t");
    const Variable y = loss(x, t, reduction, golden);
    ExpectSame(y.tensor(), golden["y"], kExact, what);
    y.Backward(golden["dy"]);
    ExpectSame(x.grad(), golden["dx"], kExact, what + " dx");
    if (!labels) ExpectSame(t.grad(), golden["dt"], kExact, what + " dt");
  }
}

using Plain = Variable (*)(const Variable&, const Variable&, Reduction);
LossFunction Of(Plain function) {
  return [function](const Variable& x, const Variable& t, Reduction reduction,
                    const GoldenCase&) { return function(x, t, reduction); };
}

TEST(PyTorchsLosses, OfDistances) {
  ExpectPyTorchsLoss("l1", Of(autograd::L1Loss));
  ExpectPyTorchsLoss("l1_broadcast", Of(autograd::L1Loss));
  ExpectPyTorchsLoss("mse", Of(MseLoss));
  const auto smooth = [](double beta) {
    return [beta](const Variable& x, const Variable& t, Reduction reduction,
                  const GoldenCase&) {
      return autograd::SmoothL1Loss(x, t, beta, reduction);
    };
  };
  ExpectPyTorchsLoss("smooth_l1", smooth(1));
  ExpectPyTorchsLoss("smooth_l1_beta", smooth(0.3));
  ExpectPyTorchsLoss("smooth_l1_zero", smooth(0));
  const auto huber = [](double delta) {
    return [delta](const Variable& x, const Variable& t, Reduction reduction,
                   const GoldenCase&) {
      return autograd::HuberLoss(x, t, delta, reduction);
    };
  };
  ExpectPyTorchsLoss("huber", huber(1));
  ExpectPyTorchsLoss("huber_delta", huber(2.5));
}

TEST(PyTorchsLosses, OfTwoClasses) {
  const auto with = [](auto function) {
    return [function](const Variable& x, const Variable& t, Reduction reduction,
                      const GoldenCase& golden) {
      return function(x, t,
                      BinaryLossOptions{.weight = golden["weight"],
                                        .pos_weight = golden["pos_weight"],
                                        .reduction = reduction});
    };
  };
  for (const char* name : {"bce", "bce_ends", "bce_weight"})
    ExpectPyTorchsLoss(name, with(autograd::BceLoss));
  for (const char* name : {"bce_logits", "bce_logits_far", "bce_logits_weights",
                           "bce_logits_far_weights"})
    ExpectPyTorchsLoss(name, with(autograd::BceWithLogitsLoss));
}

TEST(PyTorchsLosses, OfDistributions) {
  const auto kl = [](bool log_target) {
    return [log_target](const Variable& x, const Variable& t,
                        Reduction reduction, const GoldenCase&) {
      return autograd::KlDivLoss(x, t, log_target, reduction);
    };
  };
  ExpectPyTorchsLoss("kl", kl(false));
  ExpectPyTorchsLoss("kl_broadcast", kl(false));
  ExpectPyTorchsLoss("kl_log", kl(true));
}

LossFunction OfClasses(bool logits, double smoothing, int64_t ignored = -100) {
  return [=](const Variable& x, const Variable& t, Reduction reduction,
             const GoldenCase& golden) {
    const ClassLossOptions options{.weight = golden["weight"],
                                   .ignore_index = ignored,
                                   .label_smoothing = smoothing,
                                   .reduction = reduction};
    const int axis = x.shape().rank() > 1 ? 1 : 0;
    return logits ? autograd::CrossEntropy(x, t, options, axis)
                  : autograd::NllLoss(x, t.tensor(), options, axis);
  };
}

TEST(PyTorchsLosses, OfLabels) {
  const std::pair<const char*, int64_t> cases[] = {
      {"plain", -100}, {"one", -100},        {"ignored", -100},
      {"none", -100},  {"weight", -100},     {"all_ignored", -100},
      {"image", -100}, {"ignored_class", 3}, {"weight_ignored", 3}};
  for (const auto& [name, ignored] : cases) {
    const std::string end = name;
    ExpectPyTorchsLoss("nll_" + end, OfClasses(false, 0, ignored));
    ExpectPyTorchsLoss("ce_" + end, OfClasses(true, 0, ignored));
    ExpectPyTorchsLoss("ce_smooth_" + end, OfClasses(true, 0.2, ignored));
  }
}

TEST(PyTorchsLosses, OfProbabilitiesOfClasses) {
  for (const std::string middle : {"", "_image"}) {
    const std::string name = "ce_probabilities" + middle;
    ExpectPyTorchsLoss(name, OfClasses(true, 0));
    ExpectPyTorchsLoss(name + "_weight", OfClasses(true, 0));
    ExpectPyTorchsLoss(name + "_smooth", OfClasses(true, 0.3));
    ExpectPyTorchsLoss(name + "_smooth_weight", OfClasses(true, 0.3));
  }
}

// The modules call the functions above; their weights go where they go.
TEST(Losses, ModulesKeepTheirOptions) {
  const GoldenCase golden("losses.safetensors", "ce_smooth_image_sum");
  CrossEntropyLoss cross_entropy({.weight = golden["weight"].To(DType::kF32),
                                  .label_smoothing = 0.2,
                                  .reduction = Reduction::kSum},
                                 1);
  cross_entropy.To(test::TestDevice());
  ExpectSame(cross_entropy.Loss(golden["x"], golden["t"]).tensor(), golden["y"],
             1e-6, "cross_entropy");
  EXPECT_EQ(cross_entropy.StateDict().count("weight"), 1U);
  EXPECT_EQ(cross_entropy.Parameters().size(), 0U);
  const GoldenCase binary("losses.safetensors", "bce_logits_weights_mean");
  BCEWithLogitsLoss bce({.weight = binary["weight"].To(DType::kF32),
                         .pos_weight = binary["pos_weight"].To(DType::kF32)});
  EXPECT_EQ(bce.StateDict().size(), 2U);
  ExpectSame(bce.Loss(binary["x"], binary["t"]).tensor(), binary["y"], 1e-6,
             "bce");
}

TEST(Losses, ModulesAreTheFunctions) {
  const auto expect = [](const std::string& name, LossModule& module) {
    const GoldenCase golden("losses.safetensors", name);
    ExpectSame(module.Loss(golden["x"], golden["t"]).tensor(), golden["y"],
               kExact, name);
  };
  L1Loss l1(Reduction::kSum);
  expect("l1_sum", l1);
  MSELoss mse;
  expect("mse_mean", mse);
  SmoothL1Loss smooth(0.3);
  expect("smooth_l1_beta_mean", smooth);
  HuberLoss huber(2.5, Reduction::kNone);
  expect("huber_delta_none", huber);
  KLDivLoss kl(true, Reduction::kBatchMean);
  expect("kl_log_batchmean", kl);
  BCELoss bce;
  expect("bce_mean", bce);
  NLLLoss nll;
  expect("nll_ignored_mean", nll);
}

TEST(Losses, WrongArgumentsAreNamed) {
  const Tensor x = Put(Tensor::Full({2, 3}, 0.5));
  const Tensor row = Put(Tensor::Full({3}, 0.5));
  EXPECT_EQ(ErrorOf([&] { MseLoss(x, row); }),
            "[mse_loss] expected a target of shape [2, 3], got [3]");
  EXPECT_THAT(ErrorOf([&] { autograd::BceLoss(x, row); }),
              HasSubstr("[bce_loss] expected a target of shape [2, 3]"));
  EXPECT_THAT(ErrorOf([&] { autograd::L1Loss(x, x, Reduction::kBatchMean); }),
              HasSubstr("[l1_loss] a batch mean is for KL divergence alone"));
  EXPECT_THAT(ErrorOf([&] { autograd::SmoothL1Loss(x, x, -1); }),
              HasSubstr("expected beta >= 0, got -1"));
  EXPECT_THAT(ErrorOf([&] { autograd::HuberLoss(x, x, 0); }),
              HasSubstr("expected delta > 0, got 0"));
  EXPECT_THAT(ErrorOf([&] {
                autograd::BceWithLogitsLoss(
                    row, row, {.weight = Put(Tensor::Ones({2, 3}))});
              }),
              HasSubstr("a weight of shape [2, 3] does not broadcast to [3]"));
  const Tensor labels = Put<int64_t>({0, 2});
  EXPECT_THAT(ErrorOf([&] {
                autograd::CrossEntropy(x, labels,
                                       {.weight = row.Slice(0, 0, 2)});
              }),
              HasSubstr("expected a weight for each of 3 classes, got [2]"));
  EXPECT_THAT(ErrorOf([&] {
                autograd::CrossEntropy(x, labels, {.label_smoothing = 1.5});
              }),
              HasSubstr("label smoothing 1.5 is outside [0, 1]"));
  EXPECT_THAT(
      ErrorOf([&] { autograd::CrossEntropy(x, x, {.ignore_index = 1}); }),
      HasSubstr("targets are probabilities: label 1 cannot be ignored"));
}

// Where a GPU would have to wait to tell, it gives NaN.
TEST(Losses, ValuesOutOfRangeThrowOrGiveNaN) {
  const Tensor x = Put<float>({0.5, 1.5});
  const Tensor logits = Put(Tensor::Zeros({2, 3}));
  const Tensor labels = Put<int64_t>({1, 3});
  if (test::TestDevice().is_cpu()) {
    EXPECT_EQ(ErrorOf([&] { autograd::BceLoss(x, x); }),
              "[bce_loss] probability 1.5 at 1 is outside [0, 1]");
    EXPECT_EQ(ErrorOf([&] { autograd::NllLoss(logits, labels); }),
              "[nll_loss] label 3 at 1 is outside [0, 3)");
    return;
  }
  EXPECT_TRUE(std::isnan(autograd::BceLoss(x, x).tensor().Item()));
  EXPECT_TRUE(std::isnan(autograd::NllLoss(logits, labels).tensor().Item()));
}

TEST(Losses, TakeEveryFloatingDType) {
  const GoldenCase golden("losses.safetensors",
                          "ce_smooth_weight_ignored_mean");
  const GoldenCase binary("losses.safetensors", "bce_logits_weights_mean");
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const double tolerance = dtype == DType::kF32   ? 1e-5
                             : dtype == DType::kF16 ? 1e-2
                                                    : 5e-2;
    const Variable x(golden["x"].To(dtype), true);
    const Variable y = CrossEntropy(x, golden["t"],
                                    {.weight = golden["weight"].To(dtype),
                                     .ignore_index = 3,
                                     .label_smoothing = 0.2});
    EXPECT_EQ(y.dtype(), dtype);
    ExpectSame(y.tensor().To(DType::kF64), golden["y"], tolerance, Name(dtype));
    y.Backward(golden["dy"].To(dtype));
    ExpectSame(x.grad().To(DType::kF64), golden["dx"], tolerance, Name(dtype));
    const Variable z = autograd::BceWithLogitsLoss(
        binary["x"].To(dtype), binary["t"].To(dtype),
        {.weight = binary["weight"].To(dtype),
         .pos_weight = binary["pos_weight"].To(dtype)});
    ExpectSame(z.tensor().To(DType::kF64), binary["y"], tolerance, Name(dtype));
  }
}

TEST(Losses, ComputeInF32UnderAutocast) {
  const GoldenCase golden("losses.safetensors", "nll_weight_mean");
  const Tensor x = golden["x"].To(DType::kBF16);
  CrossEntropyLoss cross_entropy({.weight = golden["weight"].To(DType::kF32)});
  NLLLoss nll({.weight = golden["weight"].To(DType::kF32)});
  BCEWithLogitsLoss bce({.weight = Put(Tensor::Full({5}, 0.5)),
                         .pos_weight = Put(Tensor::Full({5}, 2))});
  L1Loss l1;
  const AutocastScope scope(DType::kBF16);
  const Tensor half = Put(Tensor::Full(x.shape(), 0.5));
  EXPECT_EQ(cross_entropy.Loss(x, golden["t"]).dtype(), DType::kF32);
  EXPECT_EQ(nll.Loss(x, golden["t"]).dtype(), DType::kF32);
  EXPECT_EQ(bce.Loss(x, half).dtype(), DType::kF32);
  EXPECT_EQ(l1.Loss(x, half).dtype(), DType::kF32);
}

}  // namespace
}  // namespace baton::nn
