// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/rmsprop.h"
#include "optim/rprop.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"

namespace baton::optim {
namespace {

using test::Put;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Variable Leaf(std::vector<float> values) {
  return Variable(Put<float>(values), true);
}

std::vector<float> ValuesOf(const Variable& x) {
  return x.tensor().ToVector<float>();
}

TEST(Optimizer, StepsByGradAndKeepsIt) {
  Variable x = Leaf({1, 2});
  Sgd sgd({x}, {.lr = 0.5});
  autograd::Sum(x * x).Backward();
  sgd.Step();
  EXPECT_THAT(ValuesOf(x), ElementsAre(0, 0));
  EXPECT_TRUE(x.grad().defined());
  sgd.ZeroGrad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Optimizer, StepsByGradientsFromElsewhere) {
  Variable x = Leaf({1}), y = Leaf({1});
  x.set_grad(Put<float>({100}));
  const std::map<const void*, Tensor> context = {{x.id(), Put<float>({2})}};
  Sgd sgd({x, y}, {.lr = 1});
  sgd.Step([&](const Variable& parameter) {
    const auto found = context.find(parameter.id());
    return found == context.end() ? Tensor() : found->second;
  });
  EXPECT_THAT(ValuesOf(x), ElementsAre(-1));
  EXPECT_THAT(ValuesOf(y), ElementsAre(1));
}

TEST(Optimizer, AnAbsentGradientLeavesValueStateAndVersionAlone) {
  Variable x = Leaf({1});
  Adam adam({x}, {.lr = 0.1});
  x.set_grad(Put<float>({1}));
  adam.Step();
  const StateDict before = adam.ExportState();
  const uint64_t version = x.tensor().version();
  x.ZeroGrad();
  adam.Step();
  EXPECT_EQ(x.tensor().version(), version);
  const StateDict after = adam.ExportState();
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [key, tensor] : before) {
    if (key != "steps") {
      EXPECT_TRUE(ops::BitEqual(tensor, after.at(key))) << key;
    }
  }
}

TEST(Optimizer, CountsAVersionSoThatStaleBackwardsFail) {
  Variable x = Leaf({3});
  const Variable y = x * x;
  Sgd sgd({x}, {.lr = 1});
  x.set_grad(Put<float>({1}));
  sgd.Step();
  EXPECT_THROW(y.Backward(), Error);
}

TEST(Optimizer, TheLearningRateCanChange) {
  Variable x = Leaf({0});
  Sgd sgd({x}, {.lr = 1});
  x.set_grad(Put<float>({1}));
  sgd.Step();
  sgd.set_lr(0.25);
  EXPECT_EQ(sgd.lr(), 0.25);
  sgd.Step();
  EXPECT_THAT(ValuesOf(x), ElementsAre(-1.25f));
}

TEST(Optimizer, GroupsHaveRatesOfTheirOwn) {
  Variable x = Leaf({0}), y = Leaf({0});
  Sgd sgd({{{x}, {.lr = 1}}, {{y}, {.lr = 0.5}}});
  ASSERT_EQ(sgd.groups(), 2U);
  const auto step = [&] {
    for (Variable* parameter : {&x, &y}) parameter->set_grad(Put<float>({1}));
    sgd.Step();
  };
  step();
  EXPECT_THAT(ValuesOf(x), ElementsAre(-1));
  EXPECT_THAT(ValuesOf(y), ElementsAre(-0.5f));
  sgd.set_lr(1, 0.25);
  EXPECT_EQ(sgd.lr(0), 1);
  EXPECT_EQ(sgd.lr(1), 0.25);
  step();
  EXPECT_THAT(ValuesOf(y), ElementsAre(-0.75f));
  sgd.set_lr(4);
  step();
  EXPECT_THAT(ValuesOf(x), ElementsAre(-6));
  EXPECT_THAT(ValuesOf(y), ElementsAre(-4.75f));
}

// As nn::Module lists its own.
struct NamedVariable {
  std::string name;
  Variable value;
};

TEST(Optimizer, KeepsStateUnderTheNamesOfParameters) {
  const std::vector<NamedVariable> first = {{"a.w", Leaf({1})},
                                            {"b.w", Leaf({2})}};
  const std::vector<NamedVariable> second = {{"b.w", Leaf({2})},
                                             {"a.w", Leaf({1})}};
  Adam adam(first, {.lr = 0.1});
  Variable(first[0].value).set_grad(Put<float>({1}));
  Variable(first[1].value).set_grad(Put<float>({3}));
  adam.Step();
  const StateDict state = adam.ExportState();
  EXPECT_EQ(state.count("a.w.exp_avg"), 1U);
  // In another order, and in groups.
  const std::vector<NamedVariable> b = {second[0]}, a = {second[1]};
  Adam other({{b, AdamOptions()}, {a, AdamOptions()}});
  StateDict parameters = state;
  parameters.erase("lr");
  parameters.erase("initial_lr");
  ASSERT_TRUE(other.ImportState(parameters).ok());
  EXPECT_TRUE(ops::BitEqual(other.ExportState().at("b.w.exp_avg_sq"),
                            state.at("b.w.exp_avg_sq")));
  const std::vector<NamedVariable> again = {first[0]};
  EXPECT_THROW(Sgd({{a, SgdOptions()}, {again, SgdOptions()}}), Error);
}

TEST(Optimizer, ClipsByTheNormOfAllGradients) {
  Variable x = Leaf({0}), y = Leaf({0, 0});
  Sgd sgd({{{x}, {.lr = 1}}, {{y}, {.lr = 10}}});
  sgd.set_clip({.norm = 3.5});
  x.set_grad(Put<float>({2}));
  y.set_grad(Put<float>({3, -6}));
  sgd.Step();
  EXPECT_NEAR(sgd.grad_norm().Item(), 7, 1e-6);
  EXPECT_NEAR(ValuesOf(x)[0], -1, 1e-6);
  EXPECT_NEAR(ValuesOf(y)[0], -15, 1e-5);
  EXPECT_NEAR(ValuesOf(y)[1], 30, 1e-5);
  EXPECT_EQ(y.grad().ToVector<float>()[1], -6);
  EXPECT_THROW(sgd.set_clip({.norm = 1, .value = 1}), Error);
  EXPECT_THROW(sgd.set_clip({.value = -1}), Error);
}

// As one batch of both, whose loss is the mean.
TEST(Optimizer, StepsByWhatMicroBatchesAccumulated) {
  Variable x = Leaf({1, 2}), whole = Leaf({1, 2});
  const Variable first(Put<float>({3, 4})), second(Put<float>({5, -6}));
  Sgd sgd({x}, {.lr = 0.5}), other({whole}, {.lr = 0.5});
  for (const Variable& part : {first, second})
    (autograd::Sum(x * part) * 0.5).Backward();
  sgd.Step();
  ((autograd::Sum(whole * first) + autograd::Sum(whole * second)) * 0.5)
      .Backward();
  other.Step();
  EXPECT_EQ(ValuesOf(x), ValuesOf(whole));
  EXPECT_THAT(ValuesOf(x), ElementsAre(-1, 2.5f));
}

TEST(Optimizer, FollowsAScheduleThatItsStateResumes) {
  const Schedule schedule = WarmUp(2, StepLr({.every = 1, .factor = 0.5}));
  const auto step = [](Sgd& sgd, Variable& x) {
    const double before = x.tensor().Item();
    x.set_grad(Put<float>({1}));
    sgd.Step();
    return before - x.tensor().Item();
  };
  Variable x = Leaf({0});
  Sgd sgd({x}, {.lr = 8});
  sgd.set_schedule(schedule);
  EXPECT_EQ(sgd.lr(), 4);
  for (double rate : {4, 8, 8}) EXPECT_EQ(step(sgd, x), rate);
  Variable y = Leaf({0});
  Sgd resumed({y}, {.lr = 1});
  resumed.set_schedule(schedule);
  ASSERT_TRUE(resumed.ImportState(sgd.ExportState()).ok());
  for (double rate : {4, 2}) {
    EXPECT_EQ(step(sgd, x), rate);
    EXPECT_EQ(step(resumed, y), rate);
  }
}

TEST(Optimizer, ResumesFromExportedState) {
  const auto step = [](Optimizer& optimizer, Variable& x, float grad) {
    x.set_grad(Put<float>({grad, -grad}));
    optimizer.Step();
  };
  Variable x = Leaf({1, 2});
  Adam adam({x}, {.lr = 0.1, .amsgrad = true});
  step(adam, x, 1);
  step(adam, x, 2);
  Variable resumed(x.tensor().Clone(), true);
  Adam other({resumed}, {.lr = 0.1, .amsgrad = true});
  ASSERT_TRUE(other.ImportState(adam.ExportState()).ok());
  step(adam, x, 3);
  step(other, resumed, 3);
  EXPECT_TRUE(ops::BitEqual(x.tensor(), resumed.tensor()));
}

TEST(Optimizer, ExportsCopies) {
  Variable x = Leaf({1});
  Sgd sgd({x}, {.lr = 1, .momentum = 0.5});
  x.set_grad(Put<float>({1}));
  sgd.Step();
  const StateDict state = sgd.ExportState();
  EXPECT_EQ(state.at("0.step").Item(), 1);
  sgd.Step();
  EXPECT_EQ(state.at("0.momentum_buffer").Item(), 1);
}

// On a GPU nothing is brought to the host, which would wait for it.
TEST(Optimizer, SharesTensorsWhereTheyAre) {
  Variable x = Leaf({1});
  Sgd sgd({x}, {.lr = 1, .momentum = 0.5});
  x.set_grad(Put<float>({1}));
  sgd.Step();
  const StateDict state = sgd.SharedState();
  for (const char* const key : {"0.step", "0.momentum_buffer"})
    EXPECT_EQ(state.at(key).device(), test::TestDevice()) << key;
  EXPECT_EQ(sgd.ExportState().at("0.step").device(), Device::Cpu());
  sgd.Step();
  EXPECT_EQ(state.at("0.step").Item(), 2);
}

TEST(Optimizer, RefusesStateThatDoesNotFitAndKeepsItsOwn) {
  Variable x = Leaf({1});
  Sgd sgd({x}, {.lr = 1, .momentum = 0.5});
  x.set_grad(Put<float>({1}));
  sgd.Step();
  const auto message = [&](const StateDict& state) {
    const absl::Status status = sgd.ImportState(state);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const Tensor one = Tensor::From<int64_t>({1}, Shape());
  EXPECT_THAT(message({{"0.step", one}}), HasSubstr("0.momentum_buffer"));
  EXPECT_THAT(
      message({{"0.step", one}, {"0.momentum_buffer", Tensor::Zeros({2})}}),
      HasSubstr("expected [1]"));
  StateDict state = sgd.ExportState();
  state["0.exp_avg"] = Tensor::Zeros({1});
  EXPECT_THAT(message(state), HasSubstr("0.exp_avg is unknown"));
  state = sgd.ExportState();
  state["1.step"] = one;
  EXPECT_THAT(message(state), HasSubstr("1.step is unknown"));
  state = sgd.ExportState();
  state["lr"] = Tensor::Zeros({2});
  EXPECT_THAT(message(state), HasSubstr("lr: expected 1 numbers"));
  EXPECT_EQ(sgd.ExportState().at("0.momentum_buffer").Item(), 1);
}

TEST(Optimizer, RefusesGradientsThatDoNotFitBeforeItWrites) {
  Variable x = Leaf({1}), y = Leaf({1});
  Sgd sgd({x, y}, {.lr = 1, .momentum = 0.9});
  x.set_grad(Put<float>({1}));
  y.set_grad(Put<float>({1, 2}));
  EXPECT_THROW(sgd.Step(), Error);
  EXPECT_THAT(ValuesOf(x), ElementsAre(1));
  EXPECT_EQ(sgd.ExportState().at("steps").Item(), 0);
  EXPECT_EQ(sgd.ExportState().count("0.step"), 0U);
}

TEST(Optimizer, RefusesBadParametersAndOptions) {
  Variable x = Leaf({1});
  EXPECT_THROW(Sgd({x, x}, {}), Error);
  EXPECT_THROW(Sgd({Variable()}, {}), Error);
  EXPECT_THROW(Sgd({x}, {.lr = -1}), Error);
  EXPECT_THROW(Sgd({x}, {.momentum = -0.1}), Error);
  EXPECT_THROW(Sgd({x}, {.nesterov = true}), Error);
  EXPECT_THROW(Adam({x}, {.beta1 = 1}), Error);
  EXPECT_THROW(AdamW({x}, {.eps = -1}), Error);
  EXPECT_THROW(Adagrad({x}, {.lr_decay = -1}), Error);
  EXPECT_THROW(RmsProp({x}, {.alpha = -1}), Error);
  EXPECT_THROW(Adadelta({x}, {.rho = 1.5}), Error);
  EXPECT_THROW(Adamax({x}, {.beta2 = 1}), Error);
  EXPECT_THROW(Rprop({x}, {.eta_minus = 1}), Error);
  EXPECT_THROW(Rprop({x}, {.step_size_min = 1, .step_size_max = 0.1}), Error);
  EXPECT_THROW(Sgd({{{x}, {}}, {{x}, {}}}), Error);
}

TEST(Optimizer, TakesChannelsLastParametersAndOtherOrdersOfGradients) {
  const Tensor start =
      Put(Tensor::Arange(24).To(DType::kF32).Reshape({2, 3, 2, 2}));
  const Tensor grad = ops::MulScalar(start, 2);
  Variable plain(start.Clone(), true);
  Variable last(start.Contiguous(MemoryFormat::kChannelsLast), true);
  plain.set_grad(grad);
  last.set_grad(grad);
  Sgd sgd({plain, last}, {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 2; ++i) sgd.Step();
  EXPECT_TRUE(ops::BitEqual(plain.tensor(), last.tensor().Contiguous()));
}

TEST(Optimizer, HasTheSameBitsForAnyNumberOfThreads) {
  const auto run = [](int threads) {
    const int before = ComputeThreads();
    SetComputeThreads(threads);
    const Tensor start = Put(Tensor::Arange(100'003).To(DType::kF32));
    Variable x(ops::MulScalar(start, 1e-5), true);
    Variable y(Put<float>({1, 2, 3}), true);
    x.set_grad(ops::AddScalar(ops::MulScalar(start, -2e-5), 0.3));
    y.set_grad(Put<float>({3, 2, 1}));
    AdamW adam({x, y}, {.lr = 0.1});
    for (int i = 0; i < 3; ++i) adam.Step();
    SetComputeThreads(before);
    return x.tensor();
  };
  EXPECT_TRUE(ops::BitEqual(run(1), run(4)));
}

// State and all, wherever it goes.
TEST(Optimizer, FollowsAParameterThatIsCastOrMoved) {
  Variable x(Put<float>({1, -2}), true), y(Put<float>({1, -2}), true);
  Sgd moved({x}, {.lr = 0.5, .momentum = 0.5}),
      still({y}, {.lr = 0.5, .momentum = 0.5});
  const auto step = [&](DType dtype) {
    x.set_tensor(x.tensor().To(dtype));
    x.set_grad(Put<float>({1, 2}).To(dtype));
    y.set_grad(Put<float>({1, 2}));
    moved.Step();
    still.Step();
    EXPECT_TRUE(
        ops::BitEqual(x.tensor().To(DType::kF32), y.tensor().To(DType::kF32)))
        << Name(dtype);
  };
  step(DType::kF32);
  step(DType::kF64);
  step(DType::kBF16);
  EXPECT_EQ(moved.ExportState().at("0.master").dtype(), DType::kF32);
  x.set_tensor(x.tensor().To(Device::Cpu()).To(test::TestDevice()).Clone());
  step(DType::kF32);
  EXPECT_EQ(moved.ExportState().count("0.master"), 0U);
  ASSERT_TRUE(moved.ImportState(still.ExportState()).ok());
  step(DType::kF32);
  // A format too.
  Variable w(Put(Tensor::Ones({2, 3, 2, 2})), true);
  Sgd formatted({w}, {.lr = 0.5, .momentum = 0.5});
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    w.set_tensor(w.tensor().Contiguous(format));
    w.set_grad(Tensor::EmptyLike(w.tensor()).Fill(1));
    formatted.Step();
  }
  EXPECT_EQ(w.tensor().To(Device::Cpu()).ToVector<float>()[5],
            1 - 0.5 - 0.5 * 1.5);
}

}  // namespace
}  // namespace baton::optim
