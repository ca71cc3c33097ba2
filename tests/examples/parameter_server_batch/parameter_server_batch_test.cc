// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "examples/parameter_server_batch/batch_trainer.h"
#include "examples/parameter_server_batch/batch_training.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"
#include "tests/support/within.h"
#include "tests/tools/programs/loose_workers.h"

namespace baton::examples {
namespace {

using std::chrono::milliseconds;
using testing::Fails;
using ::testing::HasSubstr;
using testing::IsOk;

// As CIFAR-10's binary form: a bright half of one colour tells the label, by
// colour and height, which no flip changes.
std::string WriteImages(const testing::TempFolder& folder) {
  std::mt19937 random(3);
  std::string records;
  for (int i = 0; i < 400; ++i) {
    const int label = static_cast<int>(random() % 4);
    records.push_back(static_cast<char>(label));
    for (int at = 0; at < 3 * 32 * 32; ++at) {
      const int y = at / 32 % 32, colour = at / (32 * 32);
      const bool bright = y / 16 == label / 2 && colour == label % 2;
      records.push_back(
          static_cast<char>(bright ? 180 + random() % 76 : random() % 80));
    }
  }
  return folder.Write("images.bin", records);
}

BatchTask SmallTask() {
  BatchTask task;
  task.model = {.depth = 18,
                .num_classes = 10,
                .width = 4,
                .cifar_stem = true,
                .seed = 1};
  task.optimizer = {.kind = "sgd", .lr = 0.05, .others = {{"momentum", 0.9}}};
  task.batch = 8;
  return task;
}

// As trainers of another worker.
absl::StatusOr<ModelState> JoinFromHere(const RRef<BatchServer>& server) {
  return server.Async<&BatchServer::Join>().Await();
}
absl::StatusOr<ModelState> ReportFromHere(const RRef<BatchServer>& server,
                                          const GradientReport& report) {
  return server.Async<&BatchServer::Report>(report).Await();
}

testing::ClusterOptions Workers() {
  testing::ClusterOptions options;
  options.names = {"alice", "bob", "carol", "dave"};
  options.fill = [](rpc::Registry& registry) {
    RegisterBatchTraining(registry);
    registry.AddFunction<&JoinFromHere>().AddFunction<&ReportFromHere>();
  };
  return options;
}

TEST(ParameterServerBatch, LearnsWhileTrainersAreKilledAndJoin) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(Workers());
  BatchRun run{
      .task = SmallTask(), .server = "bob", .trainers = {"carol", "dave"}};
  run.task.data = run.test_data = WriteImages(folder);
  run.task.steps = 100'000;  // it ends when it has learned, or is given up
  run.task.wait = milliseconds(300);
  run.test_images = 64;
  run.report_every = milliseconds(250);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  enum { kWhole, kKilled, kBack, kTrains } dave = kWhole;
  int64_t steps_at_kill = 0;
  const auto go_on = [&](const BatchPoint& point) {
    if (dave == kWhole && point.status.steps >= 5) {
      cluster.Kill("dave");
      steps_at_kill = point.status.steps;
      dave = kKilled;
    } else if (dave == kKilled && point.status.trainers == 1 &&
               point.status.steps > steps_at_kill + 2) {
      cluster.Restart("dave");
      dave = kBack;
    } else if (dave == kBack && point.status.trainers == 2) {
      dave = kTrains;
    }
    const bool learned = dave == kTrains && point.accuracy > 0.9;
    return !learned && std::chrono::steady_clock::now() < deadline;
  };
  const auto outcome = TrainByBatches(cluster["alice"], run, go_on);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(dave, kTrains);
  EXPECT_EQ(outcome->begun, 3);
  EXPECT_EQ(outcome->lost, 1);
  const BatchPoint& last = outcome->points.back();
  EXPECT_GT(last.status.reports, last.status.steps);
  EXPECT_GT(last.accuracy, 0.9);
}

TEST(ParameterServerBatch, SaysWhyNoTrainerIsLeft) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(Workers());
  BatchRun run{.task = SmallTask(), .server = "bob", .trainers = {"carol"}};
  run.test_data = WriteImages(folder);
  run.task.data = folder / "nothing.bin";
  run.report_every = milliseconds(20);
  EXPECT_THAT(TrainByBatches(cluster["alice"], run,
                             [](const BatchPoint&) { return true; }),
              Fails(absl::StatusCode::kUnavailable, "nothing.bin"));
}

// Calls of trainers, by hand.
class BatchServerTest : public ::testing::Test {
 protected:
  BatchServerTest() : cluster_(Workers()) {}

  void Make(BatchTask task) {
    auto made = rpc::Create<BatchServer>(cluster_["alice"], "bob", task);
    const auto server = made.Await();
    ASSERT_THAT(server, IsOk());
    server_ = *server;
  }
  GradientReport Report(const ModelState& state, double gradient, double loss) {
    return {.gradients = Tensor::Full(state.parameters.shape(), gradient),
            .buffers = state.buffers,
            .loss = loss};
  }
  // Nobody waits for the time to be over.
  static BatchTask StepOfTwoReports() {
    BatchTask task = SmallTask();
    task.optimizer = {.kind = "sgd", .lr = 0.5, .others = {}};
    task.reports = 2;
    task.wait = milliseconds(60'000);
    return task;
  }
  static void ExpectMoved(const ModelState& from, const ModelState& to,
                          double by) {
    EXPECT_TRUE(ops::AllClose(to.parameters,
                              ops::Add(from.parameters, Tensor::Full({}, by)),
                              1e-6, 1e-6));
  }

  testing::LocalCluster cluster_;
  RRef<BatchServer> server_;
};

TEST_F(BatchServerTest, AStepIsByTheMeanOfTheReportsThatItNeedsAndNoMore) {
  Make(StepOfTwoReports());
  const auto start = server_.Async<&BatchServer::Join>().Await();
  ASSERT_THAT(start, IsOk());
  rpc::Agent& agent = cluster_["alice"];
  ASSERT_THAT(agent.Async<&JoinFromHere>("carol", server_).Await(), IsOk());
  ASSERT_THAT(agent.Async<&JoinFromHere>("dave", server_).Await(), IsOk());
  const auto first = server_.Async<&BatchServer::Report>(Report(*start, 1, 4));
  EXPECT_FALSE(first.Await(milliseconds(50)).ok());
  const auto second =
      agent.Async<&ReportFromHere>("carol", server_, Report(*start, 3, 2));
  // Nothing has come of dave.
  ASSERT_THAT(first.Await(), IsOk());
  ASSERT_THAT(second.Await(), IsOk());
  EXPECT_EQ(second.Await()->step, 1);
  ExpectMoved(*start, *first.Await(), -0.5 * (1 + 3) / 2);
  const auto status = server_.Async<&BatchServer::Status>().Await();
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->trainers, 3);
  EXPECT_EQ(status->reports, 2);
  EXPECT_EQ(status->cut_short, 0);
  EXPECT_EQ(status->loss, 3);
}

// A sum of f32 that depends on the order: (1 + 1e8) - 1e8 is 0, and
// (-1e8 + 1e8) + 1 is 1.
TEST_F(BatchServerTest, ReportsAreAddedByRankWheneverTheyCome) {
  BatchTask task = StepOfTwoReports();
  task.reports = 3;
  Make(task);
  const auto start = server_.Async<&BatchServer::Join>().Await();
  ASSERT_THAT(start, IsOk());
  rpc::Agent& agent = cluster_["alice"];
  ASSERT_THAT(agent.Async<&JoinFromHere>("carol", server_).Await(), IsOk());
  ASSERT_THAT(agent.Async<&JoinFromHere>("dave", server_).Await(), IsOk());
  const auto third =
      agent.Async<&ReportFromHere>("dave", server_, Report(*start, -1e8, 0));
  EXPECT_FALSE(third.Await(milliseconds(50)).ok());
  const auto second =
      agent.Async<&ReportFromHere>("carol", server_, Report(*start, 1e8, 0));
  EXPECT_FALSE(second.Await(milliseconds(50)).ok());
  const auto first =
      server_.Async<&BatchServer::Report>(Report(*start, 1, 0)).Await();
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->step, 1);
  EXPECT_TRUE(ops::AllClose(first->parameters, start->parameters, 0, 0));
}

TEST_F(BatchServerTest, AStepNeedsNoMoreReportsThanThereAreTrainers) {
  Make(StepOfTwoReports());
  const auto start = server_.Async<&BatchServer::Join>().Await();
  ASSERT_THAT(start, IsOk());
  const auto alone =
      server_.Async<&BatchServer::Report>(Report(*start, 1, 1)).Await();
  ASSERT_THAT(alone, IsOk());
  EXPECT_EQ(alone->step, 1);
  ASSERT_THAT(server_.Async<&BatchServer::Leave>().Await(), IsOk());
  const auto status = server_.Async<&BatchServer::Status>().Await();
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->trainers, 0);
  ExpectMoved(*start, *alone, -0.5);
}

TEST_F(BatchServerTest, ALateTrainerIsPartOfTheNextStep) {
  BatchTask task = SmallTask();
  task.optimizer = {.kind = "sgd", .lr = 1, .others = {}};
  task.wait = milliseconds(500);
  task.steps = 2;
  Make(task);
  const auto start = server_.Async<&BatchServer::Join>().Await();
  ASSERT_THAT(start, IsOk());
  rpc::Agent& agent = cluster_["alice"];
  ASSERT_THAT(agent.Async<&JoinFromHere>("carol", server_).Await(), IsOk());
  const auto first =
      server_.Async<&BatchServer::Report>(Report(*start, 1, 4)).Await();
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->step, 1);
  EXPECT_FALSE(first->over);
  const auto late =
      agent.Async<&ReportFromHere>("carol", server_, Report(*start, 3, 2));
  const auto next =
      server_.Async<&BatchServer::Report>(Report(*first, 1, 4)).Await();
  ASSERT_THAT(next, IsOk());
  ASSERT_THAT(late.Await(), IsOk());
  EXPECT_EQ(late.Await()->step, 2);
  EXPECT_TRUE(next->over);
  ExpectMoved(*first, *next, -2);
  const auto status = server_.Async<&BatchServer::Status>().Await();
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->cut_short, 1);
  EXPECT_EQ(status->reports, 3);
  EXPECT_EQ(status->loss, 3);
  EXPECT_EQ(*server_.Async<&BatchServer::IsOver>(milliseconds(1)).Await(),
            true);
}

// It counts, but does not stand for a trainer that is there.
TEST_F(BatchServerTest, TheReportOfATrainerThatIsLostDoesNotMakeAStepAlone) {
  BatchTask task = StepOfTwoReports();
  task.reports = 0;
  Make(task);
  const auto start = server_.Async<&BatchServer::Join>().Await();
  ASSERT_THAT(start, IsOk());
  rpc::Agent& agent = cluster_["alice"];
  ASSERT_THAT(agent.Async<&JoinFromHere>("dave", server_).Await(), IsOk());
  const auto lost =
      agent.Async<&ReportFromHere>("dave", server_, Report(*start, 1, 4));
  EXPECT_FALSE(lost.Await(milliseconds(50)).ok());
  cluster_.Kill("dave");
  EXPECT_TRUE(testing::Within(std::chrono::seconds(20), [&] {
    return server_.Async<&BatchServer::Status>().Await()->trainers == 1;
  }));
  EXPECT_EQ(server_.Async<&BatchServer::Read>().Await()->step, 0);
  const auto state =
      server_.Async<&BatchServer::Report>(Report(*start, 3, 2)).Await();
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->step, 1);
  ExpectMoved(*start, *state, -0.5 * (1 + 3) / 2);
}

TEST_F(BatchServerTest, RefusesReportsOfStrangersAndSecondOnes) {
  Make(StepOfTwoReports());
  const ModelState start = *server_.Async<&BatchServer::Read>().Await();
  const auto report = [&] {
    return server_.Async<&BatchServer::Report>(Report(start, 1, 0));
  };
  EXPECT_THAT(report().Await(),
              Fails(absl::StatusCode::kFailedPrecondition, "not joined"));
  rpc::Agent& agent = cluster_["alice"];
  ASSERT_THAT(agent.Async<&JoinFromHere>("carol", server_).Await(), IsOk());
  ASSERT_THAT(server_.Async<&BatchServer::Join>().Await(), IsOk());
  const auto first = report();
  EXPECT_FALSE(first.Await(milliseconds(50)).ok());
  EXPECT_THAT(report().Await(),
              Fails(absl::StatusCode::kInvalidArgument, "already"));
  EXPECT_EQ(server_.Async<&BatchServer::Read>().Await()->step, 0);
  ASSERT_THAT(
      agent.Async<&ReportFromHere>("carol", server_, Report(start, 1, 0))
          .Await(),
      IsOk());
  EXPECT_EQ(first.Await()->step, 1);
}

TEST_F(BatchServerTest, TheRateFollowsTheScheduleOfTheStep) {
  BatchTask task = StepOfTwoReports();
  task.reports = 1;
  task.schedule = "linear";
  task.steps = 2;
  Make(task);
  const auto start = server_.Async<&BatchServer::Join>().Await();
  ASSERT_THAT(start, IsOk());
  const auto first =
      server_.Async<&BatchServer::Report>(Report(*start, 1, 0)).Await();
  ASSERT_THAT(first, IsOk());
  ExpectMoved(*start, *first, -0.5);
  const auto second =
      server_.Async<&BatchServer::Report>(Report(*first, 1, 0)).Await();
  ASSERT_THAT(second, IsOk());
  ExpectMoved(*first, *second, -0.25);
}

TEST_F(BatchServerTest, RefusesGradientsOfAnotherModel) {
  Make(SmallTask());
  const auto start = server_.Async<&BatchServer::Join>().Await();
  ASSERT_THAT(start, IsOk());
  GradientReport report = Report(*start, 1, 0);
  report.gradients = report.gradients.Slice(0, 1, report.gradients.numel());
  EXPECT_THAT(server_.Async<&BatchServer::Report>(report).Await(),
              Fails(absl::StatusCode::kInvalidArgument, "another model"));
  EXPECT_EQ(*server_.Async<&BatchServer::IsOver>(milliseconds(1)).Await(),
            false);
}

// Of four classes: with each of twenty seeds it came to 0.9 or more.
TEST(ParameterServerBatchProgram, LearnsFromOneCommand) {
  const testing::TempFolder folder;
  const tools::Outcome outcome = tools::RunProgram(
      {"baton-run", "--workers=3",
       "--worker_program=" + testing::ProgramPath("parameter_server_batch"),
       "--", testing::ProgramPath("parameter_server_batch"),
       "--data=" + WriteImages(folder), "--width=4", "--steps=80", "--batch=8",
       "--lr=0.05", "--lr_schedule=warm-cosine", "--test_images=200",
       "--json=" + folder / "results.jsonl"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("images/s"));
  std::ifstream file(folder / "results.jsonl");
  const auto line = nlohmann::json::parse(file);
  EXPECT_GT(line["accuracy"], 0.75) << outcome.output;
  EXPECT_EQ(line["steps"], 80);
  EXPECT_EQ(line["trainers_begun"], 2);
  EXPECT_EQ(line["trainers_lost"], 0);
}

TEST(ParameterServerBatchProgram, MeasuresReportsASecond) {
  const testing::TempFolder folder;
  const std::string program = testing::ProgramPath("parameter_server_batch");
  const tools::Outcome outcome = tools::RunProgram(
      {"baton-run", "--workers=3", "--worker_program=" + program, "--", program,
       "--width=4", "--pushes=3", "--json=" + folder / "results.jsonl"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream file(folder / "results.jsonl");
  const auto line = nlohmann::json::parse(file);
  EXPECT_EQ(line["variant"], "batch resnet18");
  EXPECT_EQ(line["trainers"], 2);
  EXPECT_GT(line["pushes_per_s"], 0);
  EXPECT_GT(line["gb_per_s"], 0);
  EXPECT_GT(line["memcpy_gb_per_s"], 0);
}

TEST(ParameterServerBatchProgram, GoesOnWhenATrainerIsKilledAndStartedAgain) {
  const testing::TempFolder folder;
  const tools::Rejoining rejoining = tools::KillAndStartATrainer(
      "parameter_server_batch", {"--data=" + WriteImages(folder), "--width=4",
                                 "--batch=4", "--steps=5000", "--wait=200ms",
                                 "--test_images=16", "--report_every=200ms"});
  EXPECT_TRUE(rejoining.trains) << rejoining.outcome.output;
  EXPECT_THAT(rejoining.outcome.output,
              HasSubstr("at worker " + rejoining.killed + " is lost"));
}

TEST(ParameterServerBatchProgram, TellsItsFlagsAndWhatIsWrong) {
  const tools::Outcome help =
      tools::RunProgram({"parameter_server_batch", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("--wait"));
  EXPECT_THAT(help.output, HasSubstr("1s"));
  const tools::Outcome wrong =
      tools::RunProgram({"parameter_server_batch", "--steps=0"});
  EXPECT_EQ(wrong.code, 2);
}

}  // namespace
}  // namespace baton::examples
