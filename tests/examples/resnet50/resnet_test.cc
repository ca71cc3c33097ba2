// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "examples/resnet50/device_resnet.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/local_resnet.h"
#include "examples/support/planning.h"
#include "examples/support/train_steps.h"
#include "tests/examples/resnet50/resnet_programs.h"
#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

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

TEST_F(ResNetPrograms, PlainCallsOfStagesTrainLikeOneProcess) {
  for (const dist::Loss loss : {dist::Loss::kMse, dist::Loss::kCrossEntropy}) {
    Settings settings = SmallSettings();
    settings.loss = loss;
    const TrainingBatch batch = SyntheticBatches(settings)[0];
    const auto calls =
        MakeRemoteResNet(
            cluster_->trainer(), cluster_->workers(), settings,
            {.cuts = settings.cuts, .compute_threads = 1, .calls = true})
            .value();
    const auto split = Remote(settings, 0);
    for (int step = 0; step < 3; ++step) {
      // The workers' numbers of threads differ, and so does the order of sums.
      EXPECT_NEAR(calls->TrainStep(batch).value(),
                  split->TrainStep(batch).value(), 1e-4);
    }
  }
}

// Bit for bit, of what copies its state to others and of what does not.
TEST_F(ResNetPrograms, APipelineThatCanBeRecoveredTrainsAsAnother) {
  Settings settings = SmallSettings();
  settings.stepping.optimizer.others["momentum"] = 0.9;
  const auto batches = SyntheticBatches(settings);
  std::vector<double> wanted, got;
  const auto plain = Remote(settings, 4);
  settings.recover = true;
  const auto recoverable = Remote(settings, 4);
  for (int step = 0; step < 4; ++step) {
    const TrainingBatch& batch = batches[static_cast<size_t>(step) % 2];
    wanted.push_back(plain->TrainStep(batch).value());
    got.push_back(recoverable->TrainStep(batch).value());
  }
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(recoverable->Evaluate(batches[0]).value().loss,
            plain->Evaluate(batches[0]).value().loss);
}

// Each of whose micro-batches is one of the one pipeline's.
TEST_F(ResNetPrograms, ReplicasOfAPipelineTrainAsOneDoesOnAllMicroBatches) {
  Settings settings = SmallSettings();
  const auto batches = SyntheticBatches(settings);
  const auto one = Remote(settings, 4);
  auto more = DeviceCluster::Make(4).value();
  settings.replicas = 2;
  auto replicas =
      MakeRemoteResNet(
          more->trainer(), more->workers(), settings,
          {.cuts = settings.cuts, .split_size = 4, .compute_threads = 1})
          .value();
  for (int step = 0; step < 4; ++step) {
    const TrainingBatch& batch = batches[static_cast<size_t>(step) % 2];
    EXPECT_NEAR(replicas->TrainStep(batch).value(),
                one->TrainStep(batch).value(), 1e-6)
        << step;
  }
  const auto details = replicas->Details();
  EXPECT_THAT(details, Contains(Field(&Detail::name, "replicas")));
  EXPECT_EQ(details.back().name, "waited_share");
  const auto odd = replicas->TrainStep(
      {batches[0].inputs.Slice(0, 0, 7), batches[0].targets.Slice(0, 0, 7)});
  EXPECT_THAT(odd.status().message(), HasSubstr("7 rows for 2 replicas"));
  replicas.reset();
  EXPECT_TRUE(more->Shutdown().ok());
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
  // A worker may have two stages.
  EXPECT_EQ(workers.size(),
            std::set<int>(plan->workers.begin(), plan->workers.end()).size());
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
  EXPECT_THAT(
      ComparePlan(*plan, settings.refined_by, settings.batches, measurements),
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
              HasSubstr("cannot write "));
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
  EXPECT_THAT(line, HasSubstr("\"trainer_cpu\":"));
}

}  // namespace
}  // namespace baton::examples
