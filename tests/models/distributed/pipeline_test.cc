// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/random.h"
#include "models/nn/loss.h"
#include "optim/sgd.h"
#include "tests/models/distributed/pipeline_mlp.h"
#include "tests/models/distributed/windows_here.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"

namespace baton::dist {
namespace {

using testing::GradientsAt;
using ::testing::HasSubstr;

// Numbers of stages and workers.
struct StagesAt {
  int stages, workers;
};

TEST_F(PipelineTest, GradientsEqualAccumulationInOneProcessBitForBit) {
  for (const std::string& schedule : ScheduleNames()) {
    for (const auto& [stages, workers] :
         {StagesAt{1, 1}, {2, 2}, {3, 3}, {4, 2}, {6, 3}, {2, 1}}) {
      const auto placed = PlaceStages(schedule, stages, workers);
      if (!placed.ok()) continue;  // zb-v has two stages a worker
      for (int64_t split : {12, 4, 5, 1}) {
        SCOPED_TRACE(absl::StrCat(schedule, ": ", stages, " stages at ",
                                  workers, " workers, parts of ", split));
        MakeMlp(*placed);
        PipelineOptions options;
        options.split_size = split;
        options.schedule.name = schedule;
        options.windows = WindowsHere();
        auto pipeline = MakePipeline(options);
        for (int step = 0; step < 2; ++step) {
          Context ctx(agent());
          auto result = pipeline->Step(ctx, x_, labels_);
          ASSERT_TRUE(result.ok()) << result.status();
          for (const auto& module : local_) module->ZeroGrad();
          EXPECT_EQ(result->loss,
                    AccumulateLocally(local_, x_, labels_, split));
          ExpectGradientsEqual(ctx);
          ExpectWindowsFromTheSecondStepOn(*pipeline, step);
        }
        EXPECT_EQ(pipeline->schedule()->worker_of_stage(), *placed);
      }
    }
  }
}

TEST_F(PipelineTest, GroupsOfMicroBatchesGiveTheSameGradients) {
  for (const std::string& schedule : ScheduleNames()) {
    const auto placed = PlaceStages(schedule, 4, 2);
    ASSERT_THAT(placed, testing::IsOk());
    MakeMlp(*placed);
    PipelineOptions options;
    options.split_size = 2;  // six, in groups of four and two
    options.at_once = 4;
    options.overlap = true;
    options.schedule.name = schedule;
    options.windows = WindowsHere();
    auto pipeline = MakePipeline(options);
    for (int step = 0; step < 2; ++step) {
      Context ctx(agent());
      auto result = pipeline->Step(ctx, x_, labels_);
      ASSERT_TRUE(result.ok()) << schedule << ": " << result.status();
      for (const auto& module : local_) module->ZeroGrad();
      EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 2));
      ExpectGradientsEqual(ctx);
    }
    EXPECT_EQ(pipeline->schedule()->micro_batches(), 2);
  }
}

TEST_F(PipelineTest, TakesMicroBatchesOfGivenSizes) {
  PipelineOptions options;
  options.micro_batches = {1, 7, 4};
  for (const char* schedule : {"gpipe", "zb-h1", "auto"}) {
    MakeMlp(2);
    options.schedule.name = schedule;
    auto pipeline = MakePipeline(options);
    Context ctx(agent());
    auto result = pipeline->Step(ctx, x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss,
              AccumulateLocally(local_, x_, labels_,
                                SplitRows(12, options.micro_batches)));
    ExpectGradientsEqual(ctx);
    auto evaluated = pipeline->Evaluate(x_.Slice(0, 0, 9));
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_EQ(evaluated->outputs[0].dim(0), 9);
    const absl::Status refused =
        pipeline->Step(ctx, x_.Slice(0, 0, 9), labels_.Slice(0, 0, 9)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("1+7+4 rows do not add up to 9"));
  }
  options.split_size = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(
      Pipeline::Make(agent(), options,
                     std::vector<StageModule>(remote_.begin(), remote_.end()))
          .status()));
}

TEST_F(PipelineTest, RecomputedActivationsGiveTheSameGradients) {
  MakeMlp(3);
  PipelineOptions options;
  options.split_size = 5;
  options.recompute = true;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  auto result = pipeline->Step(ctx, x_, labels_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 5));
  ExpectGradientsEqual(ctx);
}

TEST_F(PipelineTest, AWorkerMayHaveSeveralStages) {
  MakeMlp(5);  // on three workers
  PipelineOptions options;
  options.split_size = 3;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  ASSERT_TRUE(pipeline->Step(ctx, x_, labels_).ok());
  AccumulateLocally(local_, x_, labels_, 3);
  ExpectGradientsEqual(ctx);
}

TEST_F(PipelineTest, TrainsAsOneProcessDoes) {
  MakeMlp(2);
  PipelineOptions options;
  options.split_size = 5;
  auto pipeline = MakePipeline(options);
  const optim::SgdOptions sgd_options{.lr = 0.1, .momentum = 0.9};
  Optimizer<optim::Sgd> sgd(agent(), sgd_options,
                            {remote_[0].ref(), remote_[1].ref()});
  std::vector<Variable> parameters;
  for (const auto& module : local_) {
    for (const Variable& p : module->Parameters()) parameters.push_back(p);
  }
  optim::Sgd local_sgd(parameters, sgd_options);
  double first = 0, last = 0;
  for (int step = 0; step < 10; ++step) {
    Context ctx(agent());
    auto result = pipeline->Step(ctx, x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(sgd.Step(ctx).ok());
    local_sgd.ZeroGrad();
    EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 5));
    local_sgd.Step();
    (step == 0 ? first : last) = result->loss;
  }
  EXPECT_LT(last, first);
  for (size_t i = 0; i < local_.size(); ++i) {
    auto remote = *remote_[i].StateDict().Await();
    for (const auto& [name, tensor] : local_[i]->StateDict()) {
      EXPECT_TRUE(ops::BitEqual(remote.at(name), tensor)) << name;
    }
  }
}

TEST_F(PipelineTest, EvaluatesInEvalModeWithoutAContext) {
  MakeMlp(3);
  PipelineOptions options;
  options.split_size = 5;
  auto pipeline = MakePipeline(options);
  auto result = pipeline->Evaluate(x_, labels_);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<Tensor> parts;
  for (const RowRange& rows : SplitRows(12, 5)) {
    parts.push_back(
        ForwardAll(local_, x_.Slice(0, rows.begin, rows.end)).tensor());
  }
  Tensor expected = ops::Cat(parts, 0);
  EXPECT_TRUE(ops::BitEqual(result->outputs[0], expected));
  EXPECT_NEAR(result->loss, nn::CrossEntropy(expected, labels_).tensor().Item(),
              1e-6);
  EXPECT_EQ(result->accuracy,
            static_cast<double>(nn::CountCorrect(expected, labels_)) / 12);
  auto bare = pipeline->Evaluate(x_);
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_TRUE(ops::BitEqual(bare->outputs[0], expected));
  // Training goes on after it.
  Context ctx(agent());
  EXPECT_TRUE(pipeline->Step(ctx, x_, labels_).ok());
}

TEST_F(PipelineTest, ResNetGradientsAndStatisticsEqualThoseOfOneProcess) {
  models::ResNetOptions model;
  model.depth = 18;
  model.width = 16;
  model.num_classes = 5;
  model.cifar_stem = true;
  const std::vector<std::string> cuts = {"layer2"};
  Modules local;
  std::vector<Module<ResNetStage>> remote;
  for (int i = 0; i < 2; ++i) {
    local.push_back(*ResNetStage::Make(model, cuts, i));
    local.back()->To(test::TestDevice());
    remote.push_back(
        *Module<ResNetStage>::Create(agent(), kWorkers[i], model, cuts, i)
             .Await());
  }
  Generator generator(3);
  Tensor images = test::Put(RandNormal({7, 3, 16, 16}, generator));
  Tensor labels = test::Put(RandInt(0, 5, {7}, generator));
  PipelineOptions options;
  options.split_size = 3;
  auto pipeline = *Pipeline::Make(agent(), options, {remote[0], remote[1]});
  Context ctx(agent());
  auto result = pipeline->Step(ctx, images, labels);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, AccumulateLocally(local, images, labels, 3));
  for (size_t i = 0; i < 2; ++i) {
    auto grads = *agent()
                      .Async<&GradientsAt<ResNetStage>>(remote[i].owner(), ctx,
                                                        remote[i].ref())
                      .Await();
    auto parameters = local[i]->NamedParameters();
    ASSERT_EQ(grads.size(), parameters.size());
    for (size_t p = 0; p < grads.size(); ++p) {
      EXPECT_TRUE(ops::BitEqual(grads[p], parameters[p].value.grad()))
          << parameters[p].name;
    }
    auto state = *remote[i].StateDict().Await();
    for (const auto& buffer : local[i]->NamedBuffers()) {
      EXPECT_TRUE(ops::BitEqual(state.at(buffer.name), buffer.value))
          << buffer.name;
    }
  }
}

TEST_F(PipelineTest, AStepMayHaveNoTimeLimit) {
  MakeMlp(2);
  PipelineOptions options;
  options.step_timeout = kNoLimit;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  auto result = pipeline->Step(ctx, x_, labels_);
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST_F(PipelineTest, WithoutALossTargetsAreNotSent) {
  MakeMlp(1);
  PipelineOptions options;
  options.loss = Loss::kNone;
  auto pipeline = MakePipeline(options);
  for (int i = 0; i < 50; ++i) {
    auto result = pipeline->Evaluate(x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss, 0);
  }
}

}  // namespace
}  // namespace baton::dist
