// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/any.h"
#include "optim/rmsprop.h"
#include "optim/rprop.h"
#include "optim/sgd.h"
#include "tests/optim/distributed/two_layers.h"
#include "tests/support/steps_of.h"
#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using ::testing::HasSubstr;
using testing::StepsOf;

TEST_F(OptimizerTest, SgdStepsAsTheLocalOneDoes) {
  ExpectSameAsLocal<optim::Sgd>({.lr = 0.01});
  ExpectSameAsLocal<optim::Sgd>(
      {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-2, .nesterov = true});
}

TEST_F(OptimizerTest, AdamStepsAsTheLocalOneDoes) {
  ExpectSameAsLocal<optim::Adam>({.lr = 0.01, .weight_decay = 1e-2});
  ExpectSameAsLocal<optim::Adam>({.lr = 0.01, .amsgrad = true});
}

TEST_F(OptimizerTest, TheOthersStepAsTheLocalOnesDo) {
  ExpectSameAsLocal<optim::AdamW>({.lr = 0.01, .maximize = true});
  ExpectSameAsLocal<optim::Adagrad>({.lr = 0.01, .lr_decay = 0.1});
  ExpectSameAsLocal<optim::RmsProp>(
      {.lr = 0.001, .momentum = 0.5, .centered = true});
  ExpectSameAsLocal<optim::Adadelta>({.rho = 0.95});
  ExpectSameAsLocal<optim::Adamax>({.lr = 0.05, .weight_decay = 1e-2});
  ExpectSameAsLocal<optim::Rprop>({.lr = 0.01, .step_size_max = 0.1});
}

TEST_F(OptimizerTest, OneThatIsChosenByNameStepsAsTheLocalOneDoes) {
  ExpectSameAsLocal<optim::Any>(
      *optim::AnyOptions::Parse("rmsprop,momentum=0.5,centered=1"));
}

// Biases, of both layers, in a group of their own.
TEST_F(OptimizerTest, GroupsOfParametersHaveTheirOwnOptions) {
  const optim::AdamWOptions biases{.lr = 0.02, .weight_decay = 0};
  const optim::AdamWOptions others{.lr = 0.01, .weight_decay = 0.3};
  const ParameterSource front(remote_[0].ref()), back(remote_[1].ref());
  Optimizer<optim::AdamW> remote(
      agent(), {{{front.Only({"bias"}), back.Only({"bias"})}, biases},
                {{front.Except({"bias"}), back.Except({"bias"})}, others}});
  std::vector<Variable> local_biases, local_others;
  for (const auto& layer : local_) {
    for (const auto& [name, parameter] : layer->NamedParameters()) {
      const bool is_bias = name == "linear.bias";
      (is_bias ? local_biases : local_others).push_back(parameter);
    }
  }
  ASSERT_EQ(local_biases.size(), 2u);
  optim::AdamW local({{local_biases, biases}, {local_others, others}});
  ExpectSameSteps(remote, local);
  remote.set_lr(1, 0.05);
  local.set_lr(1, 0.05);
  EXPECT_EQ(remote.lr(0), 0.02);
  EXPECT_EQ(remote.lr(1), 0.05);
  ExpectSameSteps(remote, local);
}

TEST_F(OptimizerTest, GradientsAreClippedOverAllWorkers) {
  Optimizer<optim::Sgd> remote(agent(), {.lr = 0.1, .momentum = 0.9},
                               Sources());
  optim::Sgd local(LocalParameters(), {.lr = 0.1, .momentum = 0.9});
  for (const optim::Clip& clip :
       {optim::Clip{.norm = 0.5}, optim::Clip{.value = 0.25}}) {
    remote.set_clip(clip);
    local.set_clip(clip);
    Context ctx(agent());
    Backward(ctx);
    auto norm = remote.GradNorm(ctx);
    ASSERT_TRUE(norm.ok()) << norm.status();
    absl::Status status = remote.Step(ctx);
    ASSERT_TRUE(status.ok()) << status;
    local.ZeroGrad();
    BackwardLocally();
    local.Step();
    if (clip.norm != optim::Clip::kNone) {
      EXPECT_GT(*norm, 1);  // there is something to clip
      EXPECT_NEAR(*norm, local.grad_norm().Item(), 1e-6 * *norm);
    }
    for (size_t i = 0; i < 2; ++i) {
      auto state = *remote_[i].StateDict().Await();
      for (const auto& [name, tensor] : local_[i]->StateDict())
        EXPECT_TRUE(ops::AllClose(state.at(name), tensor, 1e-6, 1e-6)) << name;
    }
  }
  remote.set_clip({.norm = 1, .value = 1});
  Context ctx(agent());
  Backward(ctx);
  EXPECT_TRUE(absl::IsInvalidArgument(remote.Step(ctx)));
}

TEST_F(OptimizerTest, StepsAreCountedWhereTheParametersAre) {
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.1}, Sources());
  EXPECT_EQ(StepsOf(cluster_.at("bob")), "none");
  for (int step = 0; step < 2; ++step) {
    Context ctx(agent());
    Backward(ctx);
    ASSERT_TRUE(sgd.Step(ctx).ok());
  }
  EXPECT_EQ(StepsOf(cluster_.at("bob")), "2");
  EXPECT_EQ(StepsOf(cluster_.at("carol")), "2");
  EXPECT_EQ(StepsOf(cluster_.at("alice")), "none");
}

// Beside the call of the step itself, whose answer says that it is done.
TEST_F(OptimizerTest, ClippingByTheNormCostsOneCallOfEachOwner) {
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.1}, Sources());
  ASSERT_TRUE(sgd.Ready().Await().ok());
  const auto calls_of_step = [&] {
    Context ctx(agent());
    Backward(ctx);
    const auto calls = [&] {
      return std::pair(cluster_.at("bob").GetDebugInfo().calls_served,
                       cluster_.at("carol").GetDebugInfo().calls_served);
    };
    const auto before = calls();
    const absl::Status status = sgd.Step(ctx);
    EXPECT_TRUE(status.ok()) << status;
    const auto after = calls();
    EXPECT_TRUE(ctx.Release().Await().ok());  // no call of it comes later
    return std::pair(after.first - before.first, after.second - before.second);
  };
  EXPECT_EQ(calls_of_step(), std::pair(uint64_t{1}, uint64_t{1}));
  sgd.set_clip({.norm = 0.5});
  EXPECT_EQ(calls_of_step(), std::pair(uint64_t{2}, uint64_t{2}));
  sgd.set_clip({.value = 0.5});
  EXPECT_EQ(calls_of_step(), std::pair(uint64_t{1}, uint64_t{1}));
}

TEST_F(OptimizerTest, ParametersMayBeNamedOneByOne) {
  auto weight = std::make_shared<Variable>(test::Put(Tensor::Ones({2})), true);
  auto rref = RRef<Variable>::Make(agent(), weight);
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.5}, {rref});
  Context ctx(agent());
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*weight * 3.0)).ok());
  absl::Status status = sgd.Step(ctx);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(weight->tensor().Select(0, 0).Item(), -0.5);
}

TEST_F(OptimizerTest, AParameterOfSeveralHandlesIsSteppedOnce) {
  // Two handles of one object, and one of a parameter in it.
  auto weight = std::make_shared<Variable>(test::Put(Tensor::Ones({2})), true);
  auto rref = RRef<Variable>::Make(agent(), weight);
  auto again =
      RRef<Variable>::Make(agent(), std::make_shared<Variable>(*weight));
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.5, .momentum = 0.9},
                            {rref, rref, again, remote_[0].ref()});
  Context ctx(agent());
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*weight * 3.0)).ok());
  absl::Status status = sgd.Step(ctx);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(weight->tensor().Select(0, 0).Item(), -0.5);
  auto state = sgd.State();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->count("0.0.momentum_buffer"), 1u);
  EXPECT_EQ(state->count("1.0.momentum_buffer"), 0u);
  EXPECT_TRUE(sgd.LoadState(*state).ok());
}

TEST_F(OptimizerTest, ALearningRateHoldsFromTheNextStepOn) {
  Optimizer<optim::Sgd> remote(agent(), {.lr = 0.01}, Sources());
  optim::Sgd local(LocalParameters(), {.lr = 0.01});
  for (double lr : {0.02, 0.005}) {
    remote.set_lr(lr);
    EXPECT_EQ(remote.lr(), lr);
    local.set_lr(lr);
    Context ctx(agent());
    Backward(ctx);
    ASSERT_TRUE(remote.Step(ctx).ok());
    local.ZeroGrad();
    BackwardLocally();
    local.Step();
    ExpectEqualParameters();
  }
}

TEST_F(OptimizerTest, BadOptionsAreReportedWithTheWorker) {
  Optimizer<optim::Sgd> sgd(agent(), {.lr = -1}, Sources());
  absl::Status ready = sgd.Ready().Await();
  EXPECT_TRUE(absl::IsInvalidArgument(ready)) << ready;
  EXPECT_THAT(std::string(ready.message()),
              ::testing::AnyOf(HasSubstr("bob"), HasSubstr("carol")));
  Context ctx(agent());
  EXPECT_FALSE(sgd.Step(ctx).ok());
}

TEST_F(OptimizerTest, ADeadWorkerIsReported) {
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.1}, Sources());
  ASSERT_TRUE(sgd.Ready().Await().ok());
  Context ctx(agent());
  Backward(ctx);
  cluster_.Kill("carol");
  absl::Status status = sgd.Step(ctx);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("carol"));
}

TEST_F(OptimizerTest, WorksWithinTheCallersTimeNotTheAgents) {
  Optimizer<optim::Adam> adam(agent(), {.lr = 0.01}, Sources());
  ASSERT_TRUE(adam.Ready().Await().ok());
  Context ctx(agent());
  Backward(ctx);
  const rpc::CallOptions patient{.timeout = std::chrono::seconds(9)};
  agent().set_default_timeout(std::chrono::milliseconds(0));
  absl::Status stepped = adam.Step(ctx, patient);
  EXPECT_TRUE(stepped.ok()) << stepped;
  auto state = adam.State(patient);
  ASSERT_TRUE(state.ok()) << state.status();
  absl::Status loaded = adam.LoadState(*state, patient);
  EXPECT_TRUE(loaded.ok()) << loaded;
}

TEST_F(OptimizerTest, GivesUpWhenTheCallersTimeIsOver) {
  Optimizer<optim::Adam> adam(agent(), {.lr = 0.01}, Sources());
  ASSERT_TRUE(adam.Ready().Await().ok());
  Context ctx(agent());
  Backward(ctx);
  const rpc::CallOptions hasty{.timeout = std::chrono::milliseconds(50)};
  auto parameters = cluster_.at("bob").service<Engine>()->parameters();
  auto other = std::make_shared<rpc::ObjectUse>();  // a step of another trainer
  // The backward's last handler may be on its way out with them.
  Promise<void> acquired;
  if (parameters->Acquire(other, [=] { acquired.Set({}); }) == 0)
    acquired.Set({});
  ASSERT_TRUE(acquired.future().Await().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(adam.Step(ctx, hasty)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(adam.State(hasty).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(adam.LoadState({}, hasty)));
  parameters->Release(*other);
}

}  // namespace
}  // namespace baton::dist
