// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/models/distributed/pipeline_mlp.h"

// What goes wrong in a pipeline, or is refused.
namespace baton::dist {
namespace {

using testing::FragileStage;
using ::testing::HasSubstr;

TEST_F(PipelineTest, AnErrorInAForwardNamesStageWorkerAndCause) {
  absl::Status status =
      StepFragile(FragileStage::Fault::kForward, std::chrono::seconds(9));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 1 of 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("forward broke"));
}

TEST_F(PipelineTest, AnErrorInABackwardNamesStageWorkerAndCause) {
  absl::Status status =
      StepFragile(FragileStage::Fault::kBackward, std::chrono::seconds(9));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 1 of 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("backward broke"));
}

TEST_F(PipelineTest, AMissedDeadlineNamesTheStage) {
  absl::Status status =
      StepFragile(FragileStage::Fault::kWait, std::chrono::milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage"));
  FragileStage::TheGate().opened.Set(absl::OkStatus());
}

TEST_F(PipelineTest, TheDeathOfAWorkerFailsTheStepOfAll) {
  MakeMlp(2);
  auto fragile = *Module<FragileStage>::Create(agent(), "dave",
                                               FragileStage::Fault::kWait, 1)
                      .Await();
  PipelineOptions options;
  options.split_size = 4;
  auto pipeline =
      *Pipeline::Make(agent(), options, {remote_[0], fragile, remote_[1]});
  Context ctx(agent());
  std::thread killer([&] {
    EXPECT_TRUE(FragileStage::TheGate().reached.future().Await().ok());
    cluster_.Kill("dave");
  });
  absl::Status status = pipeline->Step(ctx, x_, labels_).status();
  FragileStage::TheGate().opened.Set(absl::OkStatus());
  killer.join();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
}

TEST_F(PipelineTest, RefusesWhatDoesNotFit) {
  MakeMlp(2);
  PipelineOptions options;
  EXPECT_FALSE(Pipeline::Make(agent(), options, {}).ok());
  options.schedule.name = "none";
  EXPECT_FALSE(Pipeline::Make(agent(), options, {remote_[0]}).ok());
  options.schedule.name = "zb-v";  // needs two stages a worker
  EXPECT_FALSE(Pipeline::Make(agent(), options, {remote_[0], remote_[1]}).ok());
  options.schedule.name = "gpipe";
  options.split_size = -1;
  EXPECT_FALSE(Pipeline::Make(agent(), options, {remote_[0]}).ok());
  options.split_size = 4;
  auto pipeline = MakePipeline(options);
  auto status = [&](const Tensor& x, const Tensor& targets) {
    Context ctx(agent());
    return pipeline->Step(ctx, x, targets).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(status(x_, Tensor())));
  EXPECT_TRUE(absl::IsInvalidArgument(status(Tensor(), labels_)));
  EXPECT_TRUE(absl::IsInvalidArgument(status(x_, labels_.Slice(0, 0, 3))));
  absl::Status wrong = status(test::Put(Tensor::Ones({12, 7})), labels_);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("stage 0 of 2"));
  EXPECT_TRUE(status(x_, labels_).ok());
}

TEST_F(PipelineTest, ASecondPipelineOverAModuleIsRefusedWithTheRemedy) {
  MakeMlp(2);
  auto first = MakePipeline({});
  agent().set_default_timeout(std::chrono::milliseconds(400));
  auto second = Pipeline::Make(agent(), {}, {remote_[1]});
  ASSERT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  const std::string why(second.status().message());
  EXPECT_THAT(why, HasSubstr("carol"));
  EXPECT_THAT(why, HasSubstr("DenseStage"));
  EXPECT_THAT(why, HasSubstr("stage 1 of 2 of a pipeline of worker alice"));
  EXPECT_THAT(why, HasSubstr("drop that Pipeline"));
  agent().set_default_timeout(kDefaultAwait);
  Context ctx(agent());
  EXPECT_TRUE(first->Step(ctx, x_, labels_).ok());
  // Once it is dropped.
  first = nullptr;
  second = Pipeline::Make(agent(), {}, {remote_[0], remote_[1]});
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST_F(PipelineTest, CallsOfAModuleWaitUntilItsStepIsOver) {
  MakeMlp(2);
  auto fragile = *Module<FragileStage>::Create(agent(), "dave",
                                               FragileStage::Fault::kWait, 0)
                      .Await();
  auto pipeline = *Pipeline::Make(agent(), {}, {remote_[0], fragile});
  std::thread trainer([&] { EXPECT_TRUE(pipeline->Evaluate(x_).ok()); });
  ASSERT_TRUE(FragileStage::TheGate().reached.future().Await().ok());
  agent().set_default_timeout(std::chrono::milliseconds(300));
  absl::Status train = fragile.Eval().Await();
  EXPECT_TRUE(absl::IsDeadlineExceeded(train)) << train;
  EXPECT_THAT(std::string(train.message()), HasSubstr("StageGroup::Run"));
  FragileStage::TheGate().opened.Set(absl::OkStatus());
  trainer.join();
  agent().set_default_timeout(kDefaultAwait);
  EXPECT_TRUE(fragile.Eval().Await().ok());
}

}  // namespace
}  // namespace baton::dist
