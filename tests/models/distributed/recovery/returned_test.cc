// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/recovery.h"
#include "tests/models/distributed/recovery/recovered_cluster.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/support/fault.h"
#include "tests/support/local_cluster.h"
#include "tests/support/test_files.h"

// Pipelines with checkpoints, to which they return where states are lost.
namespace baton::dist {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::Fails;
using testing::IsOk;

using ReturnedTest = RecoveryTest;

absl::StatusOr<std::unique_ptr<Checkpointer>> CheckpointsOf(
    RecoveredStages& stages, rpc::Agent& trainer, const std::string& folder) {
  std::vector<SavedModule> saved;
  for (size_t i = 0; i < stages.modules().size(); ++i) {
    saved.push_back(
        SavedModule(stages.modules()[i]).Named(absl::StrCat("stage", i)));
  }
  return Checkpointer::Make(trainer, {.folder = folder}, saved, {stages.sgd()});
}

// What a trainer notes before the step of this number.
NamedTensors Position(int step) {
  return {{"position", Tensor::From<int64_t>({step})}};
}

int PositionOf(const Checkpointer::Resumed& resumed) {
  return static_cast<int>(resumed.trainer.at("position").Item());
}

absl::StatusOr<Pipeline::StepResult> NotedStep(RecoverablePipeline& pipeline,
                                               int step) {
  pipeline.Note(Position(step));
  return RecoveredStages::Step(pipeline, step);
}

// A pipeline with a journal that has taken five steps, and saved a checkpoint
// after the first four of them.
struct Noted {
  Noted(testing::LocalCluster& cluster, const testing::TempFolder& folder)
      : options{.journal = folder / "journal"},
        stages(cluster["trainer"], kStages),
        checkpoints(
            *CheckpointsOf(stages, cluster["trainer"], folder / "checkpoints")),
        pipeline(stages.Pipeline(options)) {
    pipeline->set_checkpoints(checkpoints.get());
    for (int step = 0; step < 5; ++step) {
      if (step == 4) {
        EXPECT_THAT(checkpoints->Save(4, Position(4)), IsOk());
        EXPECT_THAT(checkpoints->Wait(), IsOk());
      }
      EXPECT_THAT(NotedStep(*pipeline, step), IsOk());
    }
  }

  const RecoveryOptions options;
  RecoveredStages stages;
  const std::unique_ptr<Checkpointer> checkpoints;
  const std::unique_ptr<RecoverablePipeline> pipeline;
};

TEST_F(ReturnedTest, AStateThatIsLostWithItsBuddyIsAnErrorWithoutCheckpoints) {
  testing::LocalCluster cluster(OptionsOf({"one", "two", "three"}));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline();
  RecoveredStages::LossOf(*pipeline, 0);
  cluster.Restart("one");
  cluster.Restart("two");
  const Tensor x =
      Tensor::Ones({RecoveredStages::kRows, RecoveredStages::kWidth});
  const Tensor labels =
      Tensor::Zeros({RecoveredStages::kRows}, {.dtype = DType::kI64});
  EXPECT_THAT(pipeline->Step(x, labels),
              Fails(StatusCode::kDataLoss, "one, two; there is no checkpoint"));
  EXPECT_THAT(pipeline->Step(x, labels), Fails(StatusCode::kDataLoss, "one"));
}

TEST_F(ReturnedTest, ACheckpointThatIsResumedFromSurvivesALossInTheFirstStep) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf(kStages));
  {
    RecoveredStages stages(cluster["trainer"], kStages);
    const auto checkpoints =
        CheckpointsOf(stages, cluster["trainer"], folder.path());
    ASSERT_THAT(checkpoints, IsOk());
    const auto pipeline = stages.Pipeline();
    for (int step = 0; step < 4; ++step)
      RecoveredStages::LossOf(*pipeline, step);
    ASSERT_THAT((*checkpoints)->Save(4), IsOk());
    ASSERT_THAT((*checkpoints)->Wait(), IsOk());
  }
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto checkpoints =
      CheckpointsOf(stages, cluster["trainer"], folder.path());
  ASSERT_THAT(checkpoints, IsOk());
  const auto pipeline = stages.Pipeline();
  ASSERT_THAT((*checkpoints)->Resume(IfBroken::kFail), IsOk());
  ASSERT_THAT(pipeline->Keep(), IsOk());
  cluster.Restart("two");
  for (int step = 4; step < kSteps; ++step) {
    EXPECT_EQ(RecoveredStages::LossOf(*pipeline, step),
              wanted_[static_cast<size_t>(step)]);
  }
}

TEST_F(ReturnedTest, ATrainerThatAnotherHasFollowedSavesNoCheckpoint) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "other"}));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto checkpoints =
      CheckpointsOf(stages, cluster["trainer"], folder / "checkpoints");
  ASSERT_THAT(checkpoints, IsOk());
  RecoveryOptions options;
  options.journal = folder / "journal";
  const auto pipeline = stages.Pipeline(options);
  pipeline->set_checkpoints(checkpoints->get());
  RecoveredStages::LossOf(*pipeline, 0);
  ASSERT_THAT((*checkpoints)->Save(1), IsOk());
  ASSERT_THAT((*checkpoints)->Wait(), IsOk());
  RecoveredStages others_stages(cluster["other"], kStages);
  const auto others = others_stages.Pipeline(options);
  const auto refused = Fails(StatusCode::kPermissionDenied, "worker other");
  EXPECT_THAT((*checkpoints)->Save(2), refused);
  EXPECT_THAT(pipeline->Keep(), refused);
  EXPECT_THAT(CheckpointSteps(folder / "checkpoints"), ElementsAre(1));
}

TEST_F(ReturnedTest, AStateThatIsLostWithItsBuddyIsThatOfTheLastCheckpoint) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf(kStages));
  rpc::Agent& trainer = cluster["trainer"];
  RecoveredStages stages(trainer, kStages);
  const auto checkpoints = CheckpointsOf(stages, trainer, folder.path());
  ASSERT_THAT(checkpoints, IsOk());
  const auto pipeline = stages.Pipeline();
  pipeline->set_checkpoints(checkpoints->get());
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step)
    losses.push_back(RecoveredStages::LossOf(*pipeline, step));
  ASSERT_THAT((*checkpoints)->Save(4), IsOk());
  ASSERT_THAT((*checkpoints)->Wait(), IsOk());
  RecoveredStages::LossOf(*pipeline, 4);
  cluster.Restart("one");
  cluster.Restart("two");
  const Tensor x =
      Tensor::Ones({RecoveredStages::kRows, RecoveredStages::kWidth});
  EXPECT_THAT(
      pipeline->Step(
          x, Tensor::Zeros({RecoveredStages::kRows}, {.dtype = DType::kI64})),
      Fails(StatusCode::kDataLoss, "gone back to the checkpoint of step 4"));
  ASSERT_TRUE(pipeline->resumed().has_value());
  EXPECT_EQ(pipeline->resumed()->step, 4);
  for (int step = 4; step < kSteps; ++step)
    losses.push_back(RecoveredStages::LossOf(*pipeline, step));
  EXPECT_EQ(losses, wanted_);
}

TEST_F(ReturnedTest, ATrainerAfterAReturnGoesOnFromTheCheckpoint) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "other"}));
  const Noted noted(cluster, folder);
  cluster.Restart("one");
  cluster.Restart("two");
  EXPECT_THAT(NotedStep(*noted.pipeline, 5),
              Fails(StatusCode::kDataLoss, "the checkpoint of step 4"));
  RecoveredStages others_stages(cluster["other"], kStages);
  const auto others = others_stages.Pipeline(noted.options);
  ASSERT_TRUE(others->resumed().has_value());
  EXPECT_EQ(PositionOf(*others->resumed()), 4);
  for (int step = 4; step < kSteps; ++step) {
    EXPECT_EQ(RecoveredStages::LossOf(*others, step),
              wanted_[static_cast<size_t>(step)]);
  }
}

// The second one cannot write twice, as where it is killed in between.
TEST_F(ReturnedTest, ATrainerThatFailsWhileItTakesUpIsFollowedToo) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(
      OptionsOf({"one", "two", "three", "second", "third"}));
  const Noted noted(cluster, folder);
  // An entry that cannot be removed.
  const std::string stays = folder / "journal/trainer-0-step-9.safetensors";
  std::filesystem::create_directories(stays + "/full");
  RecoveredStages second(cluster["second"], kStages);
  EXPECT_THAT(second.MakePipeline(noted.options),
              Fails(StatusCode::kUnavailable, "trainer-0-step-9"));
  std::filesystem::remove_all(stays);
  RecoveredStages third(cluster["third"], kStages);
  const auto pipeline = third.Pipeline(noted.options);
  ASSERT_TRUE(pipeline->resumed().has_value());
  EXPECT_EQ(PositionOf(*pipeline->resumed()), 4);
  EXPECT_EQ(RecoveredStages::LossOf(*pipeline, 4), wanted_[4]);
}

TEST_F(ReturnedTest, AStateThatIsKeptIsTakenUpWithWhatWasNotedOfIt) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "other"}));
  const Noted noted(cluster, folder);
  noted.pipeline->Note(Position(5));  // which the failing step writes
  EXPECT_FALSE(noted.pipeline
                   ->Step(Tensor::Ones({RecoveredStages::kRows, 1}),
                          Tensor::Zeros({RecoveredStages::kRows},
                                        {.dtype = DType::kI64}))
                   .ok());
  const auto loaded = noted.checkpoints->Resume(IfBroken::kFail);
  ASSERT_THAT(loaded, IsOk());
  noted.pipeline->Note(loaded->trainer);
  ASSERT_THAT(noted.pipeline->Keep(), IsOk());
  RecoveredStages others_stages(cluster["other"], kStages);
  const auto others = others_stages.Pipeline(noted.options);
  ASSERT_TRUE(others->resumed().has_value());
  EXPECT_EQ(PositionOf(*others->resumed()), 4);
  EXPECT_EQ(RecoveredStages::LossOf(*others, 4), wanted_[4]);
}

// States that are kept while steps are repeated must be noted, too.
TEST_F(ReturnedTest, WhatARecoveryHasRepeatedIsTakenUpByAnotherTrainer) {
  for (int i = 0; i < 9; ++i) {
    const int lost_at = 4 + i / 3, end = lost_at + 1 + i % 3;
    SCOPED_TRACE(absl::StrCat("lost before step ", lost_at, " of ", end));
    const testing::TempFolder folder;
    const auto faults = std::make_shared<rpc::FaultPlan>();
    testing::ClusterOptions workers =
        OptionsOf({"one", "two", "three", "other"});
    workers.faults = faults;
    testing::LocalCluster cluster(workers);
    RecoveryOptions options = Recorded();
    options.journal = folder / "journal";
    RecoveredStages stages(cluster["trainer"], kStages);
    const auto pipeline = stages.Pipeline(options);
    EXPECT_THAT(NotedStep(*pipeline, 0), IsOk());
    // Later states become safe so late that several steps are repeated.
    faults->Add({.kind = rpc::FaultKind::kDelay,
                 .matches =
                     [](const rpc::WorkerInfo&, const std::string&,
                        const rpc::Message& message) {
                       return message.tensors.size() > 4;  // a state
                     },
                 .delay = std::chrono::seconds(3)});
    for (int step = 1; step < end; ++step) {
      if (step == lost_at) {
        cluster.Restart("two");
        faults->Clear();
      }
      EXPECT_THAT(NotedStep(*pipeline, step), IsOk());
    }
    ASSERT_FALSE(recoveries_.empty());
    EXPECT_GT(recoveries_.back().redone, 2);
    RecoveredStages others_stages(cluster["other"], kStages);
    const auto others = others_stages.Pipeline(options);
    ASSERT_TRUE(others->resumed().has_value());
    const int position = PositionOf(*others->resumed());
    EXPECT_LE(position, end);
    for (int step = position; step < kSteps; ++step) {
      EXPECT_EQ(RecoveredStages::LossOf(*others, step),
                wanted_[static_cast<size_t>(step)]);
    }
  }
}

TEST_F(ReturnedTest, NoStepIsPossibleWhereAllCheckpointsAreBroken) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf(kStages));
  const Noted noted(cluster, folder);
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(folder / "checkpoints")) {
    if (file.path().extension() == ".safetensors")
      std::filesystem::resize_file(file.path(), 10);
  }
  cluster.Restart("one");
  cluster.Restart("two");
  const auto broken =
      Fails(StatusCode::kDataLoss, "all checkpoints are broken");
  EXPECT_THAT(NotedStep(*noted.pipeline, 5), broken);
  EXPECT_THAT(noted.pipeline->status(), broken);
  EXPECT_THAT(NotedStep(*noted.pipeline, 5), broken);
  EXPECT_THAT(noted.pipeline->Evaluate(Tensor::Ones(
                  {RecoveredStages::kRows, RecoveredStages::kWidth})),
              broken);
}

}  // namespace
}  // namespace baton::dist
