// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/grad_scaler.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"

namespace baton::optim {
namespace {

using test::Put;
using test::TestDevice;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Variable> Parameters(DType dtype) {
  return {Variable(Put<float>({1, 2, 3}).To(dtype), true),
          Variable(Put<float>({4, 5}).To(dtype), true)};
}

// Gradients of 1, times the scale; with `bad` in the place of one.
void SetGradients(const std::vector<Variable>& parameters, double scale,
                  float bad = 1) {
  for (const Variable& parameter : parameters) {
    Variable(parameter).set_grad(
        Tensor::Full(parameter.shape(), scale,
                     {.dtype = parameter.dtype(), .device = TestDevice()}));
  }
  if (bad != 1) parameters[1].grad().Slice(0, 1, 2).Fill(bad);
}

std::vector<float> ValuesOf(const Variable& parameter) {
  return parameter.tensor().To(DType::kF32).ToVector<float>();
}

TEST(GradScaler, StepsByUnscaledGradients) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const auto parameters = Parameters(dtype);
    Sgd sgd(parameters, {.lr = 0.5});
    GradScaler scaler({TestDevice()}, {.scale = 1024});
    EXPECT_EQ(scaler.scale(TestDevice()).Item(), 1024);
    SetGradients(parameters, 1024);
    scaler.Step(sgd);
    EXPECT_EQ(ValuesOf(parameters[0]), (std::vector<float>{0.5, 1.5, 2.5}));
    EXPECT_EQ(ValuesOf(parameters[1]), (std::vector<float>{3.5, 4.5}));
    EXPECT_EQ(scaler.scale(TestDevice()).Item(), 1024);
  }
}

template <typename O, typename Options>
void LeavesOutOverflows(const Options& options) {
  for (float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    const auto parameters = Parameters(DType::kF16),
               others = Parameters(DType::kF16);
    O optimizer(parameters, options), plain(others, options);
    GradScaler scaler({TestDevice()}, {.scale = 128});
    SetGradients(others, 1);
    for (bool overflows : {true, false, true, false}) {
      SetGradients(parameters, scaler.scale(TestDevice()).Item(),
                   overflows ? bad : 1);
      scaler.Step(optimizer);
      if (!overflows) plain.Step();
    }
    EXPECT_EQ(scaler.scale(TestDevice()).Item(), 32);
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_EQ(ValuesOf(parameters[i]), ValuesOf(others[i])) << bad;
    const StateDict expected = plain.ExportState();
    for (const auto& [key, tensor] : optimizer.ExportState()) {
      if (key == "steps") continue;  // those left out too
      EXPECT_TRUE(ops::BitEqual(tensor, expected.at(key))) << key;
    }
  }
}

TEST(GradScaler, LeavesOutSgdStepsThatOverflow) {
  LeavesOutOverflows<Sgd>(
      SgdOptions{.lr = 0.5, .momentum = 0.5, .dampening = 0.5});
}

TEST(GradScaler, LeavesOutAdamStepsThatOverflow) {
  LeavesOutOverflows<Adam>(AdamOptions{.lr = 0.125});
}

TEST(GradScaler, GrowsAfterAnIntervalAndShrinksAtOnce) {
  const auto parameters = Parameters(DType::kF32);
  Sgd sgd(parameters, {.lr = 0});
  GradScaler scaler({TestDevice()}, {.scale = 8, .interval = 2});
  std::vector<double> scales;
  for (float bad : {1.f, 1.f, 1.f, kInfinity, 1.f, 1.f}) {
    SetGradients(parameters, 1, bad);
    scaler.Step(sgd);
    scales.push_back(scaler.scale(TestDevice()).Item());
  }
  EXPECT_EQ(scales, (std::vector<double>{8, 16, 16, 8, 8, 16}));
}

TEST(GradScaler, EachStepGoesByTheScaleOfItsTimeRecordedOrNot) {
  const auto parameters = Parameters(DType::kF16);
  Sgd sgd(parameters, {.lr = 0.5});
  GradScaler scaler({TestDevice()}, {.scale = 64});
  const auto step = [&] { scaler.Step(sgd); };
  SetGradients(parameters, 64);
  step();
  EXPECT_EQ(ValuesOf(parameters[1])[0], 3.5);
  std::function<void()> again = step;
  if (TestDevice().is_cuda()) {
    again = [graph = Graph::Record({TestDevice()}, step)] { graph.Replay(); };
  }
  again();
  EXPECT_EQ(ValuesOf(parameters[1])[0], 3);
  parameters[1].grad().Fill(kInfinity);
  again();
  EXPECT_EQ(ValuesOf(parameters[0])[0], 0);
  EXPECT_EQ(ValuesOf(parameters[1])[0], 3);
  EXPECT_EQ(scaler.scale(TestDevice()).Item(), 32);
  parameters[0].grad().Fill(32);
  parameters[1].grad().Fill(32);
  again();
  EXPECT_EQ(ValuesOf(parameters[1])[0], 2.5);
}

TEST(GradScaler, StateComesBack) {
  const auto parameters = Parameters(DType::kF32);
  Sgd sgd(parameters, {.lr = 0});
  GradScaler scaler({TestDevice()}, {.scale = 8, .interval = 2});
  SetGradients(parameters, 1);
  scaler.Step(sgd);
  GradScaler other({TestDevice()}, {.interval = 2});
  ASSERT_TRUE(other.ImportState(scaler.ExportState()).ok());
  SetGradients(parameters, 1);
  other.Step(sgd);
  EXPECT_EQ(other.scale(TestDevice()).Item(), 16);
  EXPECT_TRUE(absl::IsInvalidArgument(other.ImportState({})));
}

TEST(GradScaler, OptionsOutOfRangeAreErrors) {
  EXPECT_THROW(GradScaler({}, {}), Error);
  EXPECT_THROW(GradScaler({TestDevice()}, {.scale = 0}), Error);
  EXPECT_THROW(GradScaler({TestDevice()}, {.growth = 0.5}), Error);
  EXPECT_THROW(GradScaler({TestDevice()}, {.backoff = 2}), Error);
  EXPECT_THROW(GradScaler({TestDevice()}, {.interval = 0}), Error);
}

}  // namespace
}  // namespace baton::optim
