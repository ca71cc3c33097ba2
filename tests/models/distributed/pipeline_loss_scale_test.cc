// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/models/distributed/pipeline_mlp.h"
#include "tests/support/status_matchers.h"

// Steps whose loss has a scale, as stages of f16 need it.
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::Fails;
using testing::IsOk;

class PipelineLossScale : public PipelineTest {
 protected:
  static constexpr double kRate = 0.1;

  void Make(const optim::GradScalerOptions& scale, double clip_norm = 0) {
    MakeMlp(2);
    pipeline_ = MakePipeline({.split_size = 4, .loss_scale = scale});
    optimizer_ = std::make_unique<Optimizer<optim::Sgd>>(
        agent(), optim::SgdOptions{.lr = kRate},
        std::vector<ParameterSource>{remote_[0].ref(), remote_[1].ref()});
    if (clip_norm > 0) optimizer_->set_clip({.norm = clip_norm});
  }
  Pipeline::StepResult Step(const Tensor& x) {
    const auto result = pipeline_->Step(*optimizer_, x, labels_);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? *result : Pipeline::StepResult();
  }
  std::vector<nn::StateMap> States() {
    std::vector<nn::StateMap> states;
    for (const auto& stage : remote_) {
      const auto state = stage.StateDict().Await();
      EXPECT_THAT(state, IsOk());
      states.push_back(*state);
    }
    return states;
  }
  // What one process does in a step without a scale.
  void StepHere(double clip_norm = 0) {
    std::vector<Variable> all;
    for (const auto& module : local_) {
      module->ZeroGrad();
      for (const Variable& each : module->Parameters()) all.push_back(each);
    }
    AccumulateLocally(local_, x_, labels_, 4);
    optim::Sgd sgd(all, {.lr = kRate});
    if (clip_norm > 0) sgd.set_clip({.norm = clip_norm});
    sgd.Step();
  }
  void ExpectAsHere() {
    const std::vector<nn::StateMap> states = States();
    for (size_t stage = 0; stage < states.size(); ++stage) {
      for (const auto& [name, value] : local_[stage]->StateDict()) {
        EXPECT_TRUE(ops::AllClose(states[stage].at(name), value, 1e-5, 1e-6))
            << stage << " " << name;
      }
    }
  }
  // Nothing of the first input gets into the model, so that a huge one is felt
  // by the gradients of the first stage's weights alone.
  void IgnoreFirstInput() {
    const nn::StateMap state = local_[0]->StateDict();
    for (const auto& [name, value] : state) {
      for (int axis = 0; axis < value.rank(); ++axis)
        if (value.dim(axis) == x_.dim(1)) value.Slice(axis, 0, 1).Fill(0);
    }
    ASSERT_THAT(remote_[0].LoadStateDict(state).Await(), IsOk());
  }
  Tensor HugeInputs() const {
    const Tensor huge = x_.Clone();
    huge.Slice(1, 0, 1).Fill(1e30);
    return huge;
  }

  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Optimizer<optim::Sgd>> optimizer_;
};

TEST_F(PipelineLossScale, ChangesNothingWhereNothingOverflows) {
  Make({.scale = 1024});
  for (int step = 0; step < 3; ++step) {
    EXPECT_FALSE(Step(x_).skipped);
    StepHere();
  }
  ExpectAsHere();
  EXPECT_EQ(pipeline_->loss_scale(), 1024);
}

TEST_F(PipelineLossScale, LimitsTheNormOfWhatWasUnscaled) {
  constexpr double kNorm = 0.05;
  Make({.scale = 4096}, kNorm);
  for (int step = 0; step < 2; ++step) {
    EXPECT_FALSE(Step(x_).skipped);
    StepHere(kNorm);
  }
  ExpectAsHere();
}

TEST_F(PipelineLossScale, LeavesOutAtAllWorkersAStepThatOverflowsAtOne) {
  Make({.scale = 1e12, .growth = 2, .backoff = 0.25, .interval = 2});
  IgnoreFirstInput();
  const std::vector<nn::StateMap> before = States();
  EXPECT_TRUE(Step(HugeInputs()).skipped);
  EXPECT_EQ(pipeline_->loss_scale(), 0.25e12);
  const std::vector<nn::StateMap> after = States();
  for (size_t stage = 0; stage < before.size(); ++stage) {
    for (const auto& [name, value] : before[stage])
      EXPECT_TRUE(ops::BitEqual(after[stage].at(name), value)) << name;
  }
  EXPECT_FALSE(Step(x_).skipped);
  EXPECT_EQ(pipeline_->loss_scale(), 0.25e12);
  EXPECT_FALSE(Step(x_).skipped);
  EXPECT_EQ(pipeline_->loss_scale(), 0.5e12);
  StepHere();
  StepHere();
  ExpectAsHere();
}

TEST_F(PipelineLossScale, LeavesGradientsOfAContextAsTheyAre) {
  Make({.scale = 1024});
  AccumulateLocally(local_, x_, labels_, 4);
  Context ctx(agent());
  ASSERT_THAT(pipeline_->Step(ctx, x_, labels_), IsOk());
  ExpectGradientsEqual(ctx);
}

TEST_F(PipelineLossScale, IsPositive) {
  MakeMlp(1);
  EXPECT_THAT(
      Pipeline::Make(agent(), {.loss_scale = {{.scale = 0}}}, {remote_[0]}),
      Fails(absl::StatusCode::kInvalidArgument, "scale"));
}

}  // namespace
}  // namespace baton::dist
