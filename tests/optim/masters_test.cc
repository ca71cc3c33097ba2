// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/ops/arithmetic.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"

// The f32 copies that parameters of fewer bits have.
namespace baton::optim {
namespace {

using test::Put;
using ::testing::HasSubstr;

Variable LowLeaf(DType dtype, const std::vector<float>& values) {
  return Variable(Put(values).To(dtype), true);
}

TEST(Masters, KeepWhatSmallFloatsWouldLose) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    Variable x = LowLeaf(dtype, {1, -2});
    Sgd sgd({x}, {.lr = 1e-4});
    x.set_grad(Put<float>({-1, -1}).To(dtype));
    for (int i = 0; i < 400; ++i) sgd.Step();
    EXPECT_EQ(x.tensor().dtype(), dtype);
    const Tensor master = sgd.ExportState().at("0.master");
    EXPECT_EQ(master.dtype(), DType::kF32);
    EXPECT_TRUE(ops::AllClose(master, Put<float>({1.04f, -1.96f}), 1e-5));
    EXPECT_TRUE(ops::BitEqual(x.tensor(), master.To(dtype))) << Name(dtype);
  }
}

TEST(Masters, FollowValuesWrittenByOthers) {
  Variable x = LowLeaf(DType::kBF16, {1});
  Sgd sgd({x}, {.lr = 0.5});
  x.set_grad(Put<float>({1}).To(DType::kBF16));
  sgd.Step();
  x.tensor().Fill(8);
  sgd.Step();
  EXPECT_EQ(x.tensor().Item(), 7.5);
}

// As a checkpoint's parts may come in either order.
TEST(Masters, SurviveTheirOwnParametersBeingLoaded) {
  Variable x = LowLeaf(DType::kBF16, {1, 1});
  Sgd sgd({x}, {.lr = 1e-4});
  x.set_grad(Put<float>({-1, -1}).To(DType::kBF16));
  for (int i = 0; i < 10; ++i) sgd.Step();
  const Tensor saved = x.tensor().Clone();
  x.tensor().Fill(5);
  x.tensor().CopyFrom(saved);
  sgd.Step();
  EXPECT_TRUE(ops::AllClose(sgd.ExportState().at("0.master"),
                            Put<float>({1.0011f, 1.0011f}), 1e-6));
}

TEST(Masters, ResumeFromExportedState) {
  const auto step = [](Optimizer& optimizer, Variable& x, float grad) {
    x.set_grad(Put<float>({grad, -grad}).To(DType::kBF16));
    optimizer.Step();
  };
  Variable x = LowLeaf(DType::kBF16, {1, 2});
  AdamW adam({x}, {.lr = 1e-3});
  for (float grad : {1.f, 2.f}) step(adam, x, grad);
  const StateDict state = adam.ExportState();
  EXPECT_EQ(state.at("0.step").Item(), 2);
  EXPECT_EQ(state.at("0.exp_avg").dtype(), DType::kF32);
  Variable resumed(x.tensor().Clone(), true);
  AdamW other({resumed}, {.lr = 1e-3});
  ASSERT_TRUE(other.ImportState(state).ok());
  step(adam, x, 3);
  step(other, resumed, 3);
  EXPECT_TRUE(ops::BitEqual(x.tensor(), resumed.tensor()));
  EXPECT_TRUE(ops::BitEqual(adam.ExportState().at("0.master"),
                            other.ExportState().at("0.master")));
  StateDict without = state;
  without.erase("0.master");
  EXPECT_THAT(other.ImportState(without).message(), HasSubstr("0.master"));
}

}  // namespace
}  // namespace baton::optim
