// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/checkpoint.h"
#include "core/safetensors.h"
#include "examples/resnet50/training.h"
#include "tests/examples/resnet50/coloured_images.h"
#include "tests/examples/resnet50/resnet_programs.h"
#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ResNetPrograms, TrainingOnImagesLearnsAndKeepsItsWeights) {
  testing::TempFolder folder;
  Settings settings = SmallSettings();
  settings.data = ColouredFolder(folder, "train");
  ColouredFolder(folder, "test");
  settings.loss = dist::Loss::kCrossEntropy;
  settings.epochs = 3;
  settings.saving.checkpoints.folder = folder / "run";
  settings.saving.weights = folder / "model.safetensors";
  settings.json = folder / "epochs.jsonl";
  settings.stepping.optimizer = {.lr = 0.02, .others = {{"momentum", 0.9}}};
  const absl::Status status =
      TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  ASSERT_TRUE(status.ok()) << status;
  const auto weights = ReadSafeTensors(settings.saving.weights);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->tensors.at("fc.weight").dim(0), 2);
  const std::vector<std::string> lines = LinesOf(settings.json);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines.back(), HasSubstr("\"test_accuracy\":1.0"));
  EXPECT_THAT(CheckpointSteps(folder / "run"), ElementsAre(4, 8, 12));
  // Another training does not go on by accident.
  const absl::Status again =
      TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
  EXPECT_THAT(std::string(again.message()), HasSubstr("up to step 12"));
  // The weights fit another model's no more than its classes do.
  settings.saving.checkpoints.folder = folder / "deeper";
  settings.model.depth = 34;
  const absl::Status misfit =
      TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  EXPECT_TRUE(absl::IsInvalidArgument(misfit)) << misfit;
  EXPECT_THAT(std::string(misfit.message()),
              HasSubstr(settings.saving.weights));
}

// Interrupted in the middle of the second epoch, and cut elsewhere from then
// on.
TEST_F(ResNetPrograms, ResumedTrainingEndsAsTheUndisturbedOne) {
  testing::TempFolder folder;
  Settings settings = SmallSettings();
  settings.data = ColouredFolder(folder, "train");
  settings.loss = dist::Loss::kCrossEntropy;
  settings.epochs = 2;
  settings.saving.checkpoints = {.folder = folder / "run", .keep = 0};
  settings.saving.every = 2;  // two steps are under way between
  settings.json = folder / "undisturbed.jsonl";
  settings.stepping.optimizer = {.lr = 0.02, .others = {{"momentum", 0.9}}};
  settings.stepping.schedule = "one-cycle";
  const auto train = [&] {
    return TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  };
  absl::Status status = train();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(CheckpointSteps(folder / "run"), ElementsAre(2, 4, 6, 8));
  std::filesystem::remove_all(folder / "run/step_8");
  settings.saving.resume = Saving::Resume::kLatest;
  settings.cuts = {"layer1"};
  settings.json = folder / "resumed.jsonl";
  status = train();
  ASSERT_TRUE(status.ok()) << status;
  const auto loss_of = [](const std::string& line) {
    const size_t begin = line.find("\"loss\":");
    return line.substr(begin, line.find(',', begin) - begin);
  };
  const auto undisturbed = LinesOf(folder / "undisturbed.jsonl");
  const auto resumed = LinesOf(folder / "resumed.jsonl");
  ASSERT_EQ(undisturbed.size(), 2u);
  ASSERT_EQ(resumed.size(), 1u);  // the second epoch
  EXPECT_EQ(loss_of(resumed[0]), loss_of(undisturbed[1]));
}

TEST_F(ResNetPrograms, ImagesAreTrainedInMicroBatchesOfUnequalSizes) {
  testing::TempFolder folder;
  Settings settings = SmallSettings();
  settings.data = ColouredFolder(folder, "train");
  settings.loss = dist::Loss::kCrossEntropy;
  settings.json = folder / "epochs.jsonl";
  const auto train = [&] {
    return TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  };
  settings.micro_batches = {{settings.batch - 2, 2}};
  const absl::Status status = train();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(LinesOf(settings.json).size(), 1u);
  settings.micro_batches = {{settings.batch, 2}};
  EXPECT_THAT(std::string(train().message()), HasSubstr("do not add up"));
}

TEST_F(ResNetPrograms, MissingImagesAreNamed) {
  Settings settings = SmallSettings();
  settings.data = "/no/such/images.tgz";
  const absl::Status status =
      TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/images.tgz"));
}

TEST_F(ResNetPrograms, TestImagesOfOtherClassesAreRefused) {
  testing::TempFolder folder;
  Settings settings = SmallSettings();
  settings.data = ColouredFolder(folder, "train");
  folder.Write("test/red/0.jpg", data::FlatJpeg(32, 32, 200, 20, 20));
  settings.loss = dist::Loss::kCrossEntropy;
  const absl::Status status =
      TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder / "test"));
}

TEST_F(ResNetPrograms, UnwritableFilesAreKnownBeforeTraining) {
  testing::TempFolder folder;
  Settings settings = SmallSettings();
  settings.data = ColouredFolder(folder, "train");
  const auto train = [&] {
    return TrainOnImages(cluster_->trainer(), cluster_->workers(), settings);
  };
  settings.saving.checkpoints.folder = folder / "run";
  settings.saving.weights = folder / "none/model.safetensors";
  absl::Status status = train();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(settings.saving.weights));
  settings.saving.checkpoints.folder = folder.Write("file", "") + "/run";
  status = train();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder / "file/run"));
}

TEST(TestDataBeside, TakesTheTestSetOfTheSameFolder) {
  testing::TempFolder folder;
  folder.Write("train.tgz", "");
  folder.Write("test.tgz", "");
  EXPECT_EQ(TestDataBeside(folder / "train.tgz"), folder / "test.tgz");
  EXPECT_EQ(TestDataBeside(folder / "other.tgz"), "");
  EXPECT_EQ(TestDataBeside(folder / "train"), "");
}

}  // namespace
}  // namespace baton::examples
