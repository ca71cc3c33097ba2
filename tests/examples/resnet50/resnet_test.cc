// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "core/checkpoint.h"
#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "core/safetensors.h"
#include "examples/resnet50/device_resnet.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/local_resnet.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/resnet50/training.h"
#include "examples/support/device_cluster.h"
#include "examples/support/planning.h"
#include "examples/support/train_steps.h"
#include "optim/adam.h"
#include "tests/models/data/made_files.h"
#include "tests/support/test_files.h"
#include "tools/command_line.h"

namespace baton::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Settings SmallSettings() {
  Settings settings;
  settings.model = {.depth = 18, .num_classes = 4, .width = 16};
  settings.cuts = {"layer2"};
  settings.variants = {"single", "split", "pipelined"};
  settings.split_sizes = {4, 8};
  settings.batch = 8;
  settings.image = 32;
  settings.batches = 2;
  settings.repeat = 2;
  settings.stepping.optimizer.lr = 0.01;
  return settings;
}

class ResNetPrograms : public ::testing::Test {
 protected:
  void SetUp() override { cluster_ = DeviceCluster::Make(2).value(); }
  void TearDown() override {
    const absl::Status status = cluster_->Shutdown();
    EXPECT_TRUE(status.ok()) << status;
  }
  // One thread a stage: oneDNN's sums depend on how many there are.
  std::unique_ptr<RemoteResNet> Remote(const Settings& settings,
                                       int64_t split_size) {
    return MakeRemoteResNet(cluster_->trainer(), cluster_->workers(), settings,
                            {.cuts = settings.cuts,
                             .split_size = split_size,
                             .compute_threads = 1})
        .value();
  }
  std::unique_ptr<DeviceCluster> cluster_;
};

TEST(Variants, PipelinedComesOnceASplitSize) {
  std::vector<std::string> names;
  for (const Variant& variant : VariantsOf(SmallSettings())) {
    names.push_back(variant.name);
  }
  EXPECT_THAT(names,
              ElementsAre("single", "split", "pipelined 4", "pipelined 8"));
}

TEST(Variants, BatchesAreTheSameForEach) {
  const auto a = SyntheticBatches(SmallSettings());
  const auto b = SyntheticBatches(SmallSettings());
  ASSERT_EQ(a.size(), 2u);
  EXPECT_EQ(a[1].inputs.ToVector<float>(), b[1].inputs.ToVector<float>());
  EXPECT_NE(a[0].inputs.ToVector<float>(), a[1].inputs.ToVector<float>());
  EXPECT_EQ(a[0].targets.shape(), Shape({8, 4}));  // one-hot for MSE
}

TEST_F(ResNetPrograms, SplitOverWorkersTrainsLikeSplitInOneProcess) {
  const Settings settings = SmallSettings();
  const auto batches = SyntheticBatches(settings);
  const auto remote = Remote(settings, 0);
  const auto local = LocalResNet::Make(settings, true, 1).value();
  const auto whole = LocalResNet::Make(settings, false, 1).value();
  for (int step = 0; step < 3; ++step) {
    const double loss = remote->TrainStep(batches[0]).value();
    EXPECT_DOUBLE_EQ(loss, local->TrainStep(batches[0]).value());
    EXPECT_DOUBLE_EQ(loss, whole->TrainStep(batches[0]).value());
  }
}

// On the CPU, where the numbers are the same bit for bit.
TEST_F(ResNetPrograms, OneThreadForAllDevicesTrainsLikeTheOthers) {
  const Settings settings = SmallSettings();
  const Machine machine = {.devices = {Device::Cpu(), Device::Cpu()}};
  const auto batches = SyntheticBatches(settings);
  SetComputeThreads(1);
  for (int64_t split_size : {0, 3}) {
    const auto remote = Remote(settings, split_size);
    const auto local =
        DeviceResNet::Make(settings, machine,
                           {.cut = true, .split_size = split_size})
            .value();
    const TrainingBatch placed = local->Place(batches[0]).value();
    for (int step = 0; step < 3; ++step) {
      EXPECT_NEAR(remote->TrainStep(batches[0]).value(),
                  local->TrainStep(placed).value(), 1e-6)
          << "split size " << split_size << ", step " << step;
    }
  }
}

// Momentum, batch norm and all: bit for bit.
TEST_F(ResNetPrograms, TwoStepsUnderWayLearnWhatOneAtATimeLearns) {
  Settings settings = SmallSettings();
  settings.batches = 5;
  settings.stepping.optimizer.others["momentum"] = 0.9;
  const auto batches = SyntheticBatches(settings);
  for (const int64_t split_size : {0, 3}) {
    for (const char* schedule : {"gpipe", "auto"}) {
      settings.schedule.name = schedule;
      std::vector<double> in_turn, under_way;
      const auto one = Remote(settings, split_size);
      for (const TrainingBatch& batch : batches)
        in_turn.push_back(one->TrainStep(batch).value());
      const auto two = Remote(settings, split_size);
      TrainSteps steps(*two, [&](const TrainSteps::Done& step) {
        under_way.push_back(step.loss);
        return absl::OkStatus();
      });
      for (const TrainingBatch& batch : batches)
        ASSERT_TRUE(steps.Begin(batch).ok());
      ASSERT_TRUE(steps.Finish().ok());
      EXPECT_EQ(under_way, in_turn) << split_size << " " << schedule;
    }
  }
}

TEST_F(ResNetPrograms, StatisticsOfTheFirstBatchNormAreTheWholeBatchs) {
  testing::TempFolder folder;
  Settings settings = SmallSettings();
  const auto batch = SyntheticBatches(settings)[0];
  std::map<int64_t, Tensor> variances;
  settings.deferred_batch_norm = true;
  for (const int64_t split_size : {0, 3}) {
    const auto model = Remote(settings, split_size);
    ASSERT_TRUE(model->TrainStep(batch).ok());
    const auto checkpoints =
        model->MakeCheckpointer({.folder = folder.path()}).value();
    ASSERT_TRUE(checkpoints->Save(split_size).ok());
    ASSERT_TRUE(checkpoints->Wait().ok());
    const auto saved = Checkpoint::Open(folder.path(), split_size);
    ASSERT_TRUE(saved.ok()) << saved.status();
    variances[split_size] =
        saved->ReadPart(dist::kModelPart)->at("bn1.running_var");
  }
  EXPECT_TRUE(ops::AllClose(variances[3], variances[0], 1e-5, 1e-6));
}

TEST_F(ResNetPrograms, ChooseStagesByWhatWorkersMeasure) {
  Settings settings = SmallSettings();
  settings.cuts.clear();
  settings.split_sizes.clear();
  settings.choose_stages = true;
  settings.schedule.name = "auto";
  settings.trials = 2;
  const auto batch = SyntheticBatches(settings)[0];
  std::vector<std::string> workers = cluster_->workers();
  const auto plan = ChooseStages(PlannedResNet(cluster_->trainer(), settings),
                                 batch, settings, workers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->alone_s, 0);
  EXPECT_EQ(settings.cuts, plan->cuts);
  EXPECT_EQ(workers.size(), plan->workers.size());
  EXPECT_THAT(settings.split_sizes, ElementsAre(plan->split_size));
  {
    const auto model = MakeRemoteResNet(cluster_->trainer(), workers, settings,
                                        {.cuts = settings.cuts,
                                         .split_size = plan->split_size})
                           .value();
    const double first = model->TrainStep(batch).value();
    EXPECT_LT(model->TrainStep(batch).value(), first);
  }
  std::vector<Measurement> measurements = {
      {.variant = "single", .seconds = {3}},
      {.variant = "pipelined", .split_size = 4, .seconds = {3}}};
  EXPECT_THAT(ComparePlan(*plan, settings.batches, measurements),
              HasSubstr("s predicted, 1.5 s measured"));
  EXPECT_TRUE(measurements[0].details.empty());
  EXPECT_THAT(ToJsonLine(measurements[1]),
              HasSubstr("\"measured_step_s\":1.5"));
  settings.worker_mib = 1;
  EXPECT_EQ(ChooseStages(PlannedResNet(cluster_->trainer(), settings), batch,
                         settings, workers)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(DeviceResNet, StagesTakeDevicesInTurn) {
  Settings settings = SmallSettings();
  settings.cuts = {"layer1", "layer2", "layer3"};
  settings.schedule.name = "auto";
  const Machine machine = {.devices = {Device::Cpu(), Device::Cpu()}};
  const auto model =
      DeviceResNet::Make(settings, machine, {.cut = true, .split_size = 4});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto batch = SyntheticBatches(settings)[0];
  const auto first = (*model)->TrainStep(batch);
  const auto second = (*model)->TrainStep(batch);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_LT(*second, *first);
  ASSERT_NE((*model)->schedule(), nullptr);
  EXPECT_EQ((*model)->schedule()->name, "auto");
  EXPECT_EQ((*model)->schedule()->stages(), 4);
  Measurement measurement;
  measurement.variant = "x";
  measurement.details = (*model)->Details();
  EXPECT_THAT(FormatBubbles({measurement}),
              HasSubstr("x: schedule auto, bubble"));
}

TEST(DeviceResNet, TracesAStep) {
  testing::TempFolder folder;
  const Settings settings = SmallSettings();
  const Machine machine = {.devices = {Device::Cpu(), Device::Cpu()}};
  const auto model =
      DeviceResNet::Make(settings, machine, {.cut = true, .split_size = 4})
          .value();
  const auto batch = SyntheticBatches(settings)[0];
  const auto said = model->TraceStep(batch, folder / "trace.json");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_THAT(*said, HasSubstr(folder / "trace.json"));
  std::ifstream file(folder / "trace.json");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("\"name\":\"1BW1\""));
  const auto nowhere = model->TraceStep(batch, folder / "no/trace.json");
  EXPECT_THAT(std::string(nowhere.status().message()),
              HasSubstr("cannot write to"));
}

TEST_F(ResNetPrograms, ExperimentMeasuresEveryVariant) {
  const Settings settings = SmallSettings();
  const auto measurements =
      RunExperiment(settings,
                    [&](const Variant& variant)
                        -> absl::StatusOr<std::unique_ptr<Trainable>> {
                      return Remote(settings, variant.split_size);
                    });
  ASSERT_TRUE(measurements.ok()) << measurements.status();
  ASSERT_EQ(measurements->size(), 4u);
  for (const Measurement& m : *measurements) {
    EXPECT_EQ(m.seconds.size(), 2u) << m.variant;
    EXPECT_EQ(m.items, 16) << m.variant;
    EXPECT_GT(m.loss, 0) << m.variant;
  }
}

TEST_F(ResNetPrograms, WorkersMayHaveSeveralStages) {
  Settings settings = SmallSettings();
  const TrainingBatch batch = SyntheticBatches(settings)[0];
  const double loss = Remote(settings, 4)->TrainStep(batch).value();
  settings.cuts = {"layer1", "layer2", "layer3"};
  for (const std::string& schedule : dist::ScheduleNames()) {
    settings.schedule.name = schedule;
    const auto model = Remote(settings, 4);
    EXPECT_DOUBLE_EQ(model->TrainStep(batch).value(), loss) << schedule;
    EXPECT_EQ(model->schedule()->workers.size(), 2u) << schedule;
    EXPECT_EQ(model->schedule()->stages(), 4) << schedule;
  }
  // Three stages cannot go there and back again.
  settings.cuts = {"layer1", "layer2"};
  settings.schedule.name = "zb-v";
  const auto refused =
      MakeRemoteResNet(cluster_->trainer(), cluster_->workers(), settings,
                       {.cuts = settings.cuts, .split_size = 4});
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("two stages a worker, not 3 stages at 2"));
}

TEST_F(ResNetPrograms, AnOrderIsSavedAndFollowedAgain) {
  testing::TempFolder folder;
  Settings settings = SmallSettings();
  settings.variants = {"pipelined"};
  settings.split_sizes = {4};
  settings.schedule.name = "auto";
  settings.save_schedule = folder / "order.txt";
  const auto measure = [&] {
    return RunExperiment(settings,
                         [&](const Variant& variant)
                             -> absl::StatusOr<std::unique_ptr<Trainable>> {
                           return Remote(settings, variant.split_size);
                         });
  };
  const auto first = measure();
  ASSERT_TRUE(first.ok()) << first.status();
  const auto saved = dist::LoadSchedule(folder / "order.txt");
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->name, "auto");
  settings.schedule = {.given = *saved};
  settings.schedule.given->name = "mine";
  const auto second = measure();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(dist::LoadSchedule(folder / "order.txt")->workers, saved->workers);
  const std::string line = ToJsonLine(second->front());
  EXPECT_THAT(line, HasSubstr("\"schedule\":\"mine\",\"bubble\":0."));
  EXPECT_THAT(line, HasSubstr("\"predicted_bubble\":0."));
}

// Two classes that colour alone tells apart.
std::string ColouredFolder(const testing::TempFolder& folder,
                           const std::string& name) {
  for (int i = 0; i < 16; ++i) {
    folder.Write(absl::StrCat(name, "/red/", i, ".jpg"),
                 data::FlatJpeg(32, 32, 200 + i, 20, 20));
    folder.Write(absl::StrCat(name, "/blue/", i, ".jpg"),
                 data::FlatJpeg(32, 32, 20, 20, 200 + i));
  }
  return folder / name;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

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
  settings.saving.weights = folder / "none/model.safetensors";
  absl::Status status = train();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(settings.saving.weights));
  settings.saving.checkpoints.folder = folder.Write("file", "") + "/run";
  status = train();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
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

TEST(SettingsFromFlags, TakesSchedulesByNameOrFromAFile) {
  const absl::FlagSaver saver;
  testing::TempFolder folder;
  const std::string file = folder.Write(
      "order.txt", "schedule mine\nworker 0: 0F0 0BW0\nworker 1: 1F0 1BW0\n");
  const auto choice = [](const std::vector<std::string>& flags) {
    const absl::FlagSaver one;
    EXPECT_TRUE(tools::ReadFlags(flags).ok());
    auto settings = SettingsFromFlags();
    return settings.ok() ? absl::StatusOr<dist::ScheduleChoice>(
                               std::move(settings->schedule))
                         : settings.status();
  };
  EXPECT_EQ(choice({}).value().name, "gpipe");
  for (const std::string& name : dist::ScheduleNames())
    EXPECT_EQ(choice({"--schedule=" + name}).value().name, name);
  EXPECT_EQ(choice({"--schedule_file=" + file}).value().given->name, "mine");
  EXPECT_EQ(choice({"--most_held=1.5"}).value().most_held, 1.5);
  EXPECT_THAT(std::string(choice({"--schedule=fast"}).status().message()),
              HasSubstr("zb-v, auto, not 'fast'"));
  EXPECT_FALSE(choice({"--schedule_file=" + file + "x"}).ok());
  EXPECT_FALSE(choice({"--most_held=0.5"}).ok());
}

TEST(SettingsFromFlags, TakesOptimizersAndSchedulesByName) {
  const absl::FlagSaver saver;
  const auto settings = [](const std::vector<std::string>& flags) {
    const absl::FlagSaver one;
    EXPECT_TRUE(tools::ReadFlags(flags).ok());
    return SettingsFromFlags();
  };
  const Stepping usual = settings({}).value().stepping;
  EXPECT_EQ(usual.optimizer.kind, "sgd");
  EXPECT_EQ(usual.optimizer.state_tensors(), 0);
  const Stepping images = settings({"--data=x", "--lr=0.1"}).value().stepping;
  EXPECT_EQ(images.schedule, "warm-cosine");
  EXPECT_EQ(images.optimizer.lr, 0.1);
  EXPECT_EQ(images.optimizer.others.at("momentum"), 0.9);
  EXPECT_GT(images.RatesOver(100)(1, 9), images.RatesOver(100)(1, 0));
  EXPECT_LT(images.RatesOver(100)(1, 90), images.RatesOver(100)(1, 50));
  const Stepping adam =
      settings({"--data=x", "--optimizer=adam,beta2=0.9", "--weight_decay=0.5",
                "--lr_schedule=one-cycle"})
          .value()
          .stepping;
  const auto rule = std::get<ops::AdamRule>(ops::StepRule(adam.optimizer));
  EXPECT_EQ(rule.lr, optim::AdamOptions().lr);
  EXPECT_EQ(rule.beta2, 0.9);
  EXPECT_EQ(rule.weight_decay, 0.5);
  EXPECT_EQ(adam.schedule, "one-cycle");
  for (const auto& [wrong, why] : std::map<std::string, std::string>{
           {"--optimizer=sdg", "there are sgd, adam"},
           {"--optimizer=adam,beta3=1", "it has lr, beta1"},
           {"--optimizer=adam,beta2=2", "not in [0, 1)"},
           {"--lr_schedule=steep", "there are constant, cosine"},
           {"--lr_schedule=cosine", "is for --data"},
           {"--lr=-1", "negative"}}) {
    const absl::Status status = settings({wrong}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST(SettingsFromFlags, LeavesOpenWhatIsToBeChosen) {
  const absl::FlagSaver saver;
  const auto settings = [](const std::vector<std::string>& flags) {
    const absl::FlagSaver one;
    EXPECT_TRUE(tools::ReadFlags(flags).ok());
    return SettingsFromFlags();
  };
  const Settings open = settings({"--stages=auto"}).value();
  EXPECT_TRUE(open.choose_stages);
  EXPECT_TRUE(open.cuts.empty());
  EXPECT_TRUE(open.split_sizes.empty());
  EXPECT_EQ(open.schedule.name, "auto");
  const Settings partly = settings({"--stages=auto", "--split_size=10,20",
                                    "--schedule=zb-h1", "--worker_mib=100"})
                              .value();
  EXPECT_THAT(partly.split_sizes, ElementsAre(10, 20));
  EXPECT_EQ(partly.schedule.name, "zb-h1");
  EXPECT_EQ(partly.worker_mib, 100);
  const Settings three = settings({"--stages=3"}).value();
  EXPECT_FALSE(three.choose_stages);
  EXPECT_THAT(three.cuts, ElementsAre("layer1", "layer3"));
  EXPECT_THAT(three.split_sizes, ElementsAre(20));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--stages=auto", "--cuts=layer1"},
        {"--stages=auto", "--schedule_file=x"},
        {"--stages=many"},
        {"--stages=5"},
        {"--trials=-1"},
        {"--worker_mib=-1"}}) {
    EXPECT_EQ(settings(wrong).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong.back();
  }
}

TEST(SettingsFromFlags, TakesMicroBatchesThatAddUpToTheBatch) {
  const absl::FlagSaver saver;
  const auto settings = [](const std::string& sizes) {
    EXPECT_TRUE(
        tools::ReadFlags({"--batch=60", "--micro_batches=" + sizes}).ok());
    return SettingsFromFlags();
  };
  EXPECT_EQ(settings("20+40,60").value().micro_batches,
            (std::vector<std::vector<int64_t>>{{20, 40}, {60}}));
  for (const char* wrong :
       {"60+0", "0+60", "60+x", "20+4a", "20+30", "30+40", "-5+65", "+60"}) {
    const auto refused = settings(wrong);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

}  // namespace
}  // namespace baton::examples
