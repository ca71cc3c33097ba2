// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "models/distributed/resnet_stage.h"
#include "models/distributed/step_state.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::HasSubstr;

absl::StatusOr<bool> IsTraining(const RRef<DenseStage>& module) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  return local->is_training();
}

void AddTypes(rpc::Registry& registry) {
  registry.Add<Stage>().AddFunction<&IsTraining>();
  RegisterModule<DenseStage>(registry);
  RegisterModule<ResNetStage>(registry);
}

class ModuleTest : public ::testing::Test {
 protected:
  ModuleTest()
      : cluster_(2, AddTypes),
        module_(
            *Module<DenseStage>::Create(agent(), "bob", 3, 2, true, 5).Await()),
        twin_(DenseStage::Make(3, 2, true, 5)) {}
  rpc::Agent& agent() { return cluster_.alice(); }
  testing::TrainingCluster cluster_;
  Module<DenseStage> module_;
  std::unique_ptr<DenseStage> twin_;
};

TEST_F(ModuleTest, ForwardEqualsThatOfALocalModule) {
  Tensor x = Tensor::Ones({2, 3});
  Context ctx(agent());
  auto y = module_.Forward(ctx, x).Await();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(ops::BitEqual(y->tensor(), twin_->Forward(x).tensor()));
  EXPECT_TRUE(y->requires_grad());
  EXPECT_EQ(module_.owner().name, "bob");
}

TEST_F(ModuleTest, BadInputIsAnErrorThatNamesWorkerAndMethod) {
  Context ctx(agent());
  absl::Status status =
      module_.Forward(ctx, Tensor::Ones({2, 9})).Await().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("bob"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Forward"));
}

TEST_F(ModuleTest, ChangesBetweenTrainingAndEvaluation) {
  auto training = [&] {
    return *agent().Async<&IsTraining>("bob", module_.ref()).Await();
  };
  EXPECT_TRUE(training());
  ASSERT_TRUE(module_.Eval().Await().ok());
  EXPECT_FALSE(training());
  ASSERT_TRUE(module_.Train().Await().ok());
  EXPECT_TRUE(training());
}

TEST_F(ModuleTest, StateTravelsBothWays) {
  EXPECT_EQ(*module_.NumParameters().Await(), 8);
  nn::StateMap state = *module_.StateDict().Await();
  EXPECT_TRUE(ops::BitEqual(state.at("linear.weight"),
                            twin_->StateDict().at("linear.weight")));
  state["linear.bias"] = Tensor::Full({2}, 7);
  ASSERT_TRUE(module_.LoadStateDict(state).Await().ok());
  nn::StateMap loaded = *module_.StateDict().Await();
  EXPECT_TRUE(ops::BitEqual(loaded.at("linear.bias"), Tensor::Full({2}, 7)));
  state.erase("linear.bias");
  absl::Status status = module_.LoadStateDict(state).Await();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("linear.bias"));
  EXPECT_TRUE(module_.LoadStateDict(state, false).Await().ok());
}

TEST_F(ModuleTest, StatesTravelWithinTheCallersTimeNotTheAgents) {
  const rpc::CallOptions patient{.timeout = std::chrono::seconds(9)};
  agent().set_default_timeout(std::chrono::milliseconds(0));
  auto state = module_.StateDict(patient).Await();
  ASSERT_TRUE(state.ok()) << state.status();
  absl::Status loaded = module_.LoadStateDict(*state, true, patient).Await();
  EXPECT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(agent().default_timeout(), std::chrono::milliseconds(0));
}

TEST_F(ModuleTest, AFailedMakeIsTheCreatorsError) {
  models::ResNetOptions options;
  options.depth = 19;
  auto made = Module<ResNetStage>::Create(agent(), "bob", options,
                                          std::vector<std::string>{}, 0)
                  .Await();
  EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
  EXPECT_FALSE(
      Module<DenseStage>::Create(agent(), "zoe", 3, 2, true, 5).Await().ok());
}

TEST(StepState, FailureEndsWaitsAndAnswers) {
  StepState state(1);
  Future<Tensor> answer = state.PutInput(0, Tensor::Ones({1}));
  EXPECT_FALSE(state.PutInput(0, Tensor::Ones({1})).Await().ok());
  state.Fail(absl::CancelledError("first"));
  state.Fail(absl::InternalError("second"));
  EXPECT_TRUE(absl::IsCancelled(answer.Await().status()));
  auto later = StepState::Deadline::clock::now() + std::chrono::seconds(5);
  EXPECT_TRUE(absl::IsCancelled(state.TakeInput(0, later).status()));
  EXPECT_TRUE(absl::IsCancelled(state.PutInput(1, Tensor()).Await().status()));
}

TEST(StepState, WaitsHaveADeadlineThatSaysWhatIsMissing) {
  StepState state(1);
  auto now = StepState::Deadline::clock::now();
  absl::Status status = state.TakeGradient(3, now).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gradient of micro-batch 3"));
  EXPECT_TRUE(state.PutTargets(Tensor::Ones({1})).ok());
  EXPECT_TRUE(state.Targets(now).ok());
  EXPECT_TRUE(state.Targets(now).ok());
}

}  // namespace
}  // namespace baton::dist
