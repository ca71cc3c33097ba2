// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/transformer/text_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "core/random.h"
#include "examples/support/device_cluster.h"
#include "models/distributed/micro_batches.h"
#include "models/nn/loss.h"
#include "models/transformer.h"
#include "optim/adam.h"
#include "tests/support/test_files.h"
#include "tools/command_line.h"

namespace baton::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Stages = std::vector<std::unique_ptr<models::Transformer>>;
using Cuts = std::vector<std::string>;

// As many words as validation takes.
std::string SomeText() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the cat sat on the mat and saw it. ";
  return text;
}

class TextTraining : public ::testing::Test {
 protected:
  TextTraining() {
    // One thread a stage: oneDNN's sums depend on how many there are.
    SetComputeThreads(1);
    settings_.compute_threads = 1;
    settings_.task = {
        .model = {.context = 8, .width = 16, .layers = 3, .heads = 2},
        .text = folder_.Write("text.txt", SomeText()),
        .batch = 6,
        .steps = 6,
        .stepping = {.optimizer = {.kind = "adamw", .lr = 0.01},
                     .schedule = "warm-cosine"}};
    settings_.batch = 6;
    settings_.loss = dist::Loss::kCrossEntropy;
    settings_.variants = {"pipelined"};
    settings_.split_sizes = {4};  // and a ragged end
  }

  // The losses of a variant at each step, in a cluster of so many workers.
  std::vector<Measurement> Train(int workers) {
    const auto cluster = DeviceCluster::Make(workers).value();
    const auto measurements =
        TrainOnText(cluster->trainer(), cluster->workers(), settings_);
    EXPECT_TRUE(measurements.ok()) << measurements.status();
    const absl::Status ended = cluster->Shutdown();
    EXPECT_TRUE(ended.ok()) << ended;
    return *measurements;
  }
  static std::vector<double> LossesOf(const Measurement& measurement) {
    for (const Detail& detail : measurement.details) {
      if (detail.name == "losses")
        return std::get<std::vector<double>>(detail.value);
    }
    return {};
  }

  // The same in this thread alone: micro-batches one after the other through
  // stages that are cut so.
  std::vector<double> TrainHere(const Cuts& cuts) {
    const TextTask& task = settings_.task;
    Stages stages;
    std::vector<Variable> parameters;
    for (int i = 0; i <= static_cast<int>(cuts.size()); ++i) {
      stages.push_back(
          models::Transformer::MakeStage(task.model, cuts, i).value());
      for (const Variable& parameter : stages.back()->Parameters())
        parameters.push_back(parameter);
    }
    optim::Any adam(parameters, task.stepping.optimizer);
    adam.set_schedule(task.stepping.RatesOver(task.steps));
    const data::ByteText text = ReadTexts(task).value().training;
    Generator generator(task.model.seed);
    std::vector<double> losses;
    for (int64_t step = 0; step < task.steps; ++step) {
      adam.ZeroGrad();
      losses.push_back(Accumulate(
          stages, text.Draw(task.batch, task.model.context, generator)));
      adam.Step();
    }
    return losses;
  }
  double Accumulate(const Stages& stages, const data::TokenBatch& batch) const {
    double sum = 0;
    const int64_t rows = batch.ids.dim(0);
    for (const dist::RowRange& part :
         dist::SplitRows(rows, settings_.split_sizes[0])) {
      std::vector<Variable> values = {
          Variable(batch.ids.Slice(0, part.begin, part.end))};
      for (const auto& stage : stages) values = stage->ForwardAll(values);
      const Variable loss = autograd::MulScalar(
          nn::CrossEntropy(values.at(0),
                           batch.targets.Slice(0, part.begin, part.end)),
          static_cast<double>(part.size()) / static_cast<double>(rows));
      sum += loss.tensor().Item();
      loss.Backward();
    }
    return sum;
  }

  const testing::TempFolder folder_;
  TextSettings settings_;
};

TEST_F(TextTraining, LossesOverWorkersEqualThoseOfOneProcess) {
  for (const bool tied : {false, true}) {
    settings_.task.model.tied = tied;
    for (const int stages : {2, 3, 4}) {
      settings_.cuts = EvenCuts(settings_.task.model, stages).value();
      const std::vector<Measurement> measured = Train(stages);
      ASSERT_EQ(measured.size(), 1u);
      EXPECT_EQ(LossesOf(measured[0]), TrainHere(settings_.cuts))
          << stages << " stages, " << (tied ? "tied" : "apart");
    }
  }
}

// Bit for bit, also where the head's weight is the embedding's.
TEST_F(TextTraining, StagesLearnAsTheWholeModel) {
  settings_.cuts = {"blocks.0"};
  for (const bool tied : {false, true}) {
    settings_.task.model.tied = tied;
    EXPECT_EQ(LossesOf(Train(2)[0]), TrainHere({}));
  }
}

// Each of whose micro-batches is one of the one pipeline's.
TEST_F(TextTraining, ReplicasOfAPipelineLearnAsOneDoes) {
  settings_.cuts = {"blocks.0"};
  settings_.split_sizes = {3};
  for (const bool tied : {false, true}) {
    settings_.task.model.tied = tied;
    settings_.replicas = 1;
    const std::vector<double> one = LossesOf(Train(2)[0]);
    settings_.replicas = 2;
    EXPECT_THAT(LossesOf(Train(4)[0]),
                ::testing::Pointwise(::testing::DoubleNear(1e-5), one))
        << (tied ? "tied" : "apart");
  }
}

TEST_F(TextTraining, MicroBatchesMayDifferInSize) {
  settings_.cuts = {"blocks.0"};
  const std::vector<double> losses = LossesOf(Train(2)[0]);
  settings_.micro_batches = {{4, 2}};  // as parts of 4 come to
  EXPECT_EQ(LossesOf(Train(2)[0]), losses);
}

TEST_F(TextTraining, EachVariantTrainsOnTheSameBatches) {
  settings_.cuts = {"blocks.1"};
  settings_.variants = {"single", "split", "pipelined"};
  settings_.split_sizes = {6, 3};
  settings_.schedule.name = "1f1b";
  settings_.task.model.tied = false;
  const std::vector<Measurement> measured = Train(2);
  std::vector<std::string> names;
  for (const Measurement& m : measured) names.push_back(m.variant);
  ASSERT_THAT(names,
              ElementsAre("single", "split", "pipelined 6", "pipelined 3"));
  for (const Measurement& m : measured) {
    EXPECT_EQ(m.seconds.size(), 5u) << m.variant;  // one is no warm-up
    EXPECT_EQ(m.items, 48) << m.variant;
    EXPECT_EQ(m.loss, LossesOf(m).back()) << m.variant;
    EXPECT_LT(m.loss, LossesOf(m).front()) << m.variant;
    const std::string line = ToJsonLine(m);
    EXPECT_THAT(line, HasSubstr("\"tokens_per_s\":"));
    EXPECT_THAT(line, HasSubstr("\"validation_loss\":"));
    EXPECT_THAT(line, HasSubstr("\"workers\":\"cpu, cpu\""));
  }
  // Whole batches are the same work wherever it is done.
  EXPECT_EQ(LossesOf(measured[0]), LossesOf(measured[1]));
  EXPECT_EQ(LossesOf(measured[0]), LossesOf(measured[2]));
  EXPECT_THAT(
      LossesOf(measured[3]),
      ::testing::Pointwise(::testing::DoubleNear(1e-5), LossesOf(measured[0])));
}

TEST_F(TextTraining, LocalStagesLearnAsThoseOverWorkers) {
  settings_.cuts = {"blocks.0", "blocks.1"};
  settings_.variants = {"pipelined", "local"};
  settings_.schedule.name = "1f1b";
  const std::vector<Measurement> measured = Train(3);
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_EQ(measured[1].variant, "local 4");
  EXPECT_EQ(LossesOf(measured[0]), LossesOf(measured[1]));
  EXPECT_EQ(FormatPaths(measured),
            "pipelined 4: stage 0 to 1 in-process, stage 0 to 2 in-process, "
            "stage 1 to 2 in-process\n"
            "local 4: stage 0 to 1 local, stage 0 to 2 local, stage 1 to 2 "
            "local\n");
}

TEST_F(TextTraining, APathThatIsRequiredIsFoundOrTheLinkIsNamed) {
  settings_.cuts = {"blocks.0"};
  settings_.require_path = {"in-process", "grpc"};
  settings_.variants = {"single", "local", "pipelined"};
  EXPECT_EQ(Train(2).size(), 3u);
  settings_.require_path = {"window", "cuda ipc"};
  const auto cluster = DeviceCluster::Make(2).value();
  const absl::Status refused =
      TrainOnText(cluster->trainer(), cluster->workers(), settings_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  for (const char* part :
       {"the link from stage 0 (device0) to stage 1 (device1)", "in-process",
        "--require_path=window,cuda ipc", "on one machine"})
    EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
  EXPECT_TRUE(cluster->Shutdown().ok());
}

TEST_F(TextTraining, StagesAreChosenByWhatWorkersMeasure) {
  settings_.choose_stages = true;
  settings_.schedule.name = "auto";
  settings_.split_sizes.clear();
  settings_.trials = 1;
  const std::vector<Measurement> measured = Train(2);
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_EQ(LossesOf(measured[0]).size(), 6u);
  EXPECT_THAT(ToJsonLine(measured[0]), HasSubstr("\"predicted_step_s\":"));
}

TEST_F(TextTraining, SaysWhatIsWrong) {
  settings_.cuts = {"blocks.0"};
  const auto cluster = DeviceCluster::Make(2).value();
  const auto said = [&] {
    const auto result =
        TrainOnText(cluster->trainer(), cluster->workers(), settings_);
    return std::string(result.status().message());
  };
  settings_.task.steps = 1;
  EXPECT_THAT(said(), HasSubstr("--steps must be more than 1"));
  settings_.task.text = folder_ / "none";
  EXPECT_THAT(said(), HasSubstr(folder_ / "none"));
  settings_.task.text = folder_.Write("short.txt", "too short");
  EXPECT_THAT(said(), HasSubstr("too short for --context=8"));
  EXPECT_TRUE(cluster->Shutdown().ok());
}

TEST(EvenCuts, CountTheHeadByItsProducts) {
  // A head of 256 / (12 * 128 + 2 * 64) of a block.
  EXPECT_EQ(EvenCuts({.layers = 4}, 1).value(), Cuts());
  EXPECT_EQ(EvenCuts({.layers = 4}, 2).value(), Cuts({"blocks.1"}));
  EXPECT_EQ(EvenCuts({.layers = 6}, 3).value(), Cuts({"blocks.1", "blocks.3"}));
  EXPECT_EQ(EvenCuts({.layers = 2}, 3).value(), Cuts({"blocks.0", "blocks.1"}));
  // One of 8 blocks moves the cut behind 6 of 12.
  EXPECT_EQ(EvenCuts({.vocabulary = 8 * 1664, .layers = 4}, 2).value(),
            Cuts({"blocks.3"}));
  const auto many = EvenCuts({.layers = 2}, 4);
  EXPECT_THAT(std::string(many.status().message()),
              HasSubstr("--stages is 4, but the model's 2 blocks and its head "
                        "make at most 3 stages"));
}

TEST(TextSettings, ComeFromFlags) {
  const absl::FlagSaver saver;
  const auto settings = [](std::vector<std::string> flags) {
    const absl::FlagSaver one;
    flags.insert(flags.begin(), "--text=t.txt");
    EXPECT_TRUE(tools::ReadFlags(flags).ok());
    return TextSettingsFromFlags();
  };
  const TextSettings usual = settings({}).value();
  EXPECT_THAT(usual.cuts, ElementsAre("blocks.1"));
  EXPECT_THAT(usual.split_sizes, ElementsAre(4));
  EXPECT_EQ(usual.batch, 16);
  EXPECT_TRUE(usual.task.model.tied);
  EXPECT_EQ(usual.loss, dist::Loss::kCrossEntropy);
  EXPECT_FALSE(settings({"--notied"})->task.model.tied);
  EXPECT_TRUE(settings({"--stages=auto"})->choose_stages);
  EXPECT_TRUE(usual.require_path.empty());
  EXPECT_THAT(settings({"--require_path=shared_memory,tcp"})->require_path,
              ElementsAre("shared memory", "tcp"));
  EXPECT_THAT(settings({"--variants=local"})->variants, ElementsAre("local"));
  const std::map<std::string, std::string> wrong = {
      {"--text=", "--text is missing: give a file"},
      {"--stages=9", "make at most 5 stages"},
      {"--cuts=blocks.7", "blocks.7"},
      {"--heads=5", "5 heads do not divide a width of 128"},
      {"--vocabulary=255", "--vocabulary=255 is too small: give 256"},
      {"--steps=0", "--steps=0 is too small: give 1"},
      {"--batch=0", "--batch=0 is too small: give 1"},
      {"--variants=single,double",
       "--variants takes single, split, pipelined or local, not 'double'"},
      {"--require_path=pigeon",
       "--require_path takes window, shared memory, cuda ipc, tcp or grpc, not "
       "'pigeon'"},
      {"--split_size=17", "from 1 to --batch (16)"},
      {"--micro_batches=8+9", "add up to --batch (16)"}};
  for (const auto& [flag, text] : wrong) {
    const absl::Status refused = settings({flag}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << flag;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(text)) << flag;
  }
}

}  // namespace
}  // namespace baton::examples
