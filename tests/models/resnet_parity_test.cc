// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/safetensors.h"
#include "gtest/gtest.h"
#include "models/nn/graphed_step.h"
#include "models/nn/loss.h"
#include "models/resnet.h"
#include "tests/support/golden/golden_path.h"
#include "tests/support/test_device.h"

namespace baton::models {
namespace {

using test::Put;
using test::TestDevice;

// A narrow ResNet50 that starts from PyTorch's weights; tools/golden/resnet.py
// says how the expected values came about.
class PyTorchParity : public ::testing::Test {
 protected:
  void SetUp() override {
    auto state = ReadSafeTensors(
        testing::GoldenPath("resnet50_narrow_state.safetensors"));
    ASSERT_TRUE(state.ok()) << state.status();
    auto run =
        ReadSafeTensors(testing::GoldenPath("resnet50_narrow_run.safetensors"));
    ASSERT_TRUE(run.ok()) << run.status();
    run_ = *std::move(run);
    auto model = ResNet::Make({.depth = 50, .num_classes = 10, .width = 4});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    const absl::Status loaded = model_->LoadStateDict(state->tensors);
    ASSERT_TRUE(loaded.ok()) << loaded;
    model_->To(TestDevice());
  }

  Tensor Golden(const std::string& name) const {
    return Put(run_.tensors.at(name));
  }
  double Metadata(const std::string& name) const {
    return std::stod(run_.metadata.at(name));
  }

  // Most of the steps are replays where there is a GPU.
  std::vector<double> LossesOfTenSteps(DType dtype, double rate) {
    model_->To(dtype);
    nn::GraphedStep step(
        [&](const std::vector<Tensor>& batch) -> std::vector<Tensor> {
          const Variable loss =
              nn::CrossEntropy(model_->Forward(batch[0]), batch[1]);
          loss.Backward();
          for (const Variable& p : model_->Parameters())
            ops::AddInto(p.tensor(), p.grad(), -rate);
          return {loss.tensor()};
        },
        {TestDevice()}, model_->Parameters(), {.warm_up = 3});
    std::vector<double> losses;
    for (int i = 0; i < 10; ++i) {
      losses.push_back(
          step.Run({Golden("images").To(dtype), Golden("labels")})[0].Item());
    }
    EXPECT_EQ(step.replays(), TestDevice().is_cuda() ? 7 : 0);
    return losses;
  }

  SafeTensors run_;
  std::unique_ptr<ResNet> model_;
};

// What f32 may differ by: GPUs sum in other orders than what made the values.
double Tolerance(double on_cpu) {
  return TestDevice().is_cpu() ? on_cpu : 1e-3;
}

// |a - b| / |b| over all elements.
double RelativeDistance(const Tensor& a, const Tensor& b) {
  const Tensor difference = ops::Sub(a.To(DType::kF64), b.To(DType::kF64));
  const Tensor reference = b.To(DType::kF64);
  return std::sqrt(ops::Sum(ops::Mul(difference, difference)).Item() /
                   ops::Sum(ops::Mul(reference, reference)).Item());
}

TEST_F(PyTorchParity, ForwardInBothModes) {
  model_->Eval();
  EXPECT_LT(RelativeDistance(model_->Forward(Golden("images")).tensor(),
                             Golden("logits_eval")),
            Tolerance(1e-5));
  model_->Train();
  EXPECT_LT(RelativeDistance(model_->Forward(Golden("images")).tensor(),
                             Golden("logits_train")),
            Tolerance(1e-5));
}

TEST_F(PyTorchParity, GradientsAndRunningStatistics) {
  nn::CrossEntropy(model_->Forward(Golden("images")), Golden("labels"))
      .Backward();
  for (const auto& [name, value] : model_->NamedParameters())
    EXPECT_LT(RelativeDistance(value.grad(), Golden("grad." + name)),
              Tolerance(1e-4))
        << name;
  for (const auto& [name, value] : model_->NamedBuffers())
    EXPECT_LT(RelativeDistance(value, Golden("buffer." + name)),
              Tolerance(1e-5))
        << name;
}

TEST_F(PyTorchParity, TenStepsInFloat32) {
  const auto expected = Golden("losses_float32").ToVector<double>();
  const auto losses = LossesOfTenSteps(DType::kF32, Metadata("lr_float32"));
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(losses[i], expected[i], Tolerance(1e-4) * expected[i]) << i;
}

// Without rounding in the way, steps may be large: the loss falls to a half.
TEST_F(PyTorchParity, TenLargeStepsInFloat64) {
  const auto expected = Golden("losses_float64").ToVector<double>();
  const auto losses = LossesOfTenSteps(DType::kF64, Metadata("lr_float64"));
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(losses[i], expected[i], 1e-8 * expected[i]) << i;
}

}  // namespace
}  // namespace baton::models
