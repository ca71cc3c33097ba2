// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/models/distributed/value_pipelines.h"
#include "tests/models/distributed/windows_here.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/value_stages.h"

// What stages of several inputs and outputs compute.
namespace baton::dist {
namespace {

using testing::IsOk;
using testing::TwoHeadLoss;

using PipelineValuesTest = ValuePipelineTest;

TEST_F(PipelineValuesTest, GradientsEqualAccumulationInOneProcessBitForBit) {
  for (const std::string& schedule : ScheduleNames()) {
    int ran = 0;
    for (const std::vector<int>& workers : {std::vector<int>{0, 0, 0, 0},
                                            {0, 1, 0, 1},
                                            {0, 1, 1, 0},
                                            {0, 0, 1, 2},
                                            {0, 1, 2, 0},
                                            {0, 0, 1, 1}}) {
      for (const ValueModel& model : {Forks(), ThreeUsers()}) {
        for (const int64_t split : {int64_t{5}, kRows}) {
          SCOPED_TRACE(absl::StrCat(schedule, " at ",
                                    absl::StrJoin(workers, ", "), ", parts of ",
                                    split));
          MakeModel(model, workers);
          auto pipeline = MakePipeline({.split_size = split,
                                        .schedule = {.name = schedule},
                                        .windows = WindowsHere()});
          // Some want their stages elsewhere.
          if (absl::IsInvalidArgument(pipeline.status())) continue;
          ASSERT_THAT(pipeline, IsOk());
          for (int step = 0; step < 2; ++step) {
            ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, split));
            ExpectWindowsFromTheSecondStepOn(**pipeline, step);
          }
          ++ran;
        }
      }
    }
    EXPECT_GE(ran, 4) << schedule;
  }
}

TEST_F(PipelineValuesTest, AnOutputThatNobodyUsesHasNoGradient) {
  MakeModel(Unused(), {0, 1, 0});
  for (const bool recompute : {false, true}) {
    auto pipeline = MakePipeline({.split_size = 4, .recompute = recompute});
    ASSERT_THAT(pipeline, IsOk());
    ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, 4));
  }
  EXPECT_FALSE(local_[0]->NamedParameters().back().value.grad().defined());
}

TEST_F(PipelineValuesTest, RecomputedActivationsGiveTheSameGradients) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    MakeModel(Forks(), {0, 1, 2, 0});
    auto pipeline = MakePipeline(
        {.split_size = 5, .schedule = {.name = schedule}, .recompute = true});
    if (absl::IsInvalidArgument(pipeline.status())) continue;
    ASSERT_THAT(pipeline, IsOk());
    ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, 5));
  }
}

TEST_F(PipelineValuesTest, TrainsAsOneProcessDoes) {
  MakeModel(Forks(), {0, 1, 2, 1});
  auto pipeline = MakePipeline({.split_size = 5});
  ASSERT_THAT(pipeline, IsOk());
  const optim::SgdOptions options{.lr = 0.5, .momentum = 0.9};
  std::vector<ParameterSource> sources;
  for (const auto& module : remote_) sources.push_back(module.ref());
  sources.push_back(loss_.ref());
  Optimizer<optim::Sgd> sgd(agent(), options, sources);
  Variables parameters = local_loss_->Parameters();
  for (const auto& module : local_) {
    for (const Variable& each : module->Parameters())
      parameters.push_back(each);
  }
  optim::Sgd local_sgd(parameters, options);
  for (int step = 0; step < 5; ++step) {
    const auto result = (*pipeline)->Step(sgd, batch_, labels_);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->loss, AccumulateHere(5)) << step;
    local_sgd.Step();
  }
  for (size_t i = 0; i < local_.size(); ++i) {
    const nn::StateMap state = *remote_[i].StateDict().Await();
    for (const auto& [name, tensor] : local_[i]->StateDict())
      EXPECT_TRUE(ops::BitEqual(state.at(name), tensor)) << i << " " << name;
  }
}

TEST_F(PipelineValuesTest, EvaluatesAllOutputs) {
  MakeModel(Forks(), {0, 1, 2, 1});
  auto pipeline = MakePipeline({.split_size = 5});
  ASSERT_THAT(pipeline, IsOk());
  const auto result = (*pipeline)->Evaluate(batch_, labels_);
  ASSERT_THAT(result, IsOk());
  const Variables expected = model_.forward(local_, batch_);
  ASSERT_EQ(result->outputs.size(), 2U);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(
        ops::AllClose(result->outputs[i], expected[i].tensor(), 1e-5, 1e-6));
  EXPECT_NEAR(result->loss,
              local_loss_->LossOfAll(expected, labels_).tensor().Item(), 1e-5);
  EXPECT_EQ(result->accuracy, static_cast<double>(nn::CountCorrect(
                                  expected[0].tensor(), labels_)) /
                                  kRows);
  ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, 5));
}

// As far as the whole batch moves them, for what skips stages as well.
TEST_F(PipelineValuesTest, DeferredStatisticsAreTheWholeBatchs) {
  ValueModel model = Forks();
  model.stages[2].norm = true;
  std::vector<nn::StateMap> states;
  for (const int64_t split : {int64_t{0}, int64_t{5}}) {
    MakeModel(model, {0, 1, 2, 1});
    auto pipeline =
        MakePipeline({.split_size = split, .deferred_batch_norm = true});
    ASSERT_THAT(pipeline, IsOk());
    Context ctx(agent());
    ASSERT_THAT((*pipeline)->Step(ctx, batch_, labels_), IsOk());
    states.push_back(*remote_[2].StateDict().Await());
  }
  for (const char* name : {"norm.running_mean", "norm.running_var"})
    EXPECT_TRUE(
        ops::AllClose(states[1].at(name), states[0].at(name), 1e-5, 1e-6))
        << name;
  EXPECT_EQ(states[1].at("norm.num_batches_tracked").Item(), 1);
}

}  // namespace
}  // namespace baton::dist
