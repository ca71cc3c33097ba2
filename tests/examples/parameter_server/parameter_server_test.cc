// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "examples/parameter_server/experiment.h"
#include "examples/support/charts.h"
#include "models/distributed/stock.h"
#include "tests/examples/support/digit_files.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/loose_workers.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;

testing::ClusterOptions Workers() {
  testing::ClusterOptions options;
  options.names = {"alice", "bob", "carol", "dave"};
  options.fill = [](rpc::Registry& registry) {
    dist::RegisterStock(registry);
    RegisterTrainers(registry);
  };
  options.on_start = dist::AttachStock;
  return options;
}

class ParameterServerProgram
    : public ::testing::TestWithParam<dist::Consistency> {};

AccuracyRun RunOf(dist::Consistency mode, const std::string& data) {
  AccuracyRun run;
  run.options.mode = mode;
  run.options.rule = ops::SgdRule{.lr = 0.1};
  run.options.staleness = 2;
  run.options.trainers = 2;
  run.task = {.data = data, .batch = 16, .seed = 1, .trainers = 2};
  return run;
}

// One that is over when it is killed would be none that is lost.
TEST_P(ParameterServerProgram, GoesOnWithoutATrainerThatIsKilled) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(Workers());
  AccuracyRun run = RunOf(GetParam(), WriteDigits(folder));
  run.pushes = 250;
  run.report_every = std::chrono::milliseconds(20);
  bool killed = false;
  const auto curve = TrainLeNet(
      cluster["alice"], {.servers = {"bob"}, .trainers = {"carol", "dave"}},
      run, [&](const AccuracyPoint& point) {
        if (killed || point.version < 10) return;
        killed = true;
        EXPECT_LT(point.version, 250);
        cluster.Kill("dave");
      });
  ASSERT_THAT(curve, IsOk());
  EXPECT_EQ(curve->lost, 1);
  EXPECT_GT(curve->points.back().accuracy, 0.9);
}

TEST_P(ParameterServerProgram, GoesOnWithoutATrainerThatIsKilledBeforeItJoins) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(Workers());
  AccuracyRun run = RunOf(GetParam(), WriteDigits(folder));
  run.pushes = 120;
  cluster.Kill("dave");
  cluster["bob"].RemovePeer("dave");  // as a rendezvous tells it
  const auto curve = TrainLeNet(
      cluster["alice"], {.servers = {"bob"}, .trainers = {"carol", "dave"}},
      run, [](const AccuracyPoint&) {});
  ASSERT_THAT(curve, IsOk());
  EXPECT_EQ(curve->pushes, 120);
  EXPECT_GT(curve->points.back().accuracy, 0.9);
}

TEST_P(ParameterServerProgram, LearnsToTellTheDigits) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(Workers());
  AccuracyRun run = RunOf(GetParam(), WriteDigits(folder));
  if (GetParam() == dist::Consistency::kAsynchronous)
    run.task.compression = {.kind = dist::Compression::Kind::kBf16, .keep = 1};
  run.pushes = 120;
  int64_t points = 0;
  const auto curve = TrainLeNet(
      cluster["alice"], {.servers = {"bob"}, .trainers = {"carol", "dave"}},
      run, [&](const AccuracyPoint&) { ++points; });
  ASSERT_THAT(curve, IsOk());
  EXPECT_EQ(points, static_cast<int64_t>(curve->points.size()));
  EXPECT_GT(curve->points.back().accuracy, 0.9);
  EXPECT_LT(curve->loss, 0.5);
  const int64_t updates =
      GetParam() == dist::Consistency::kBulkSynchronous ? 120 : 240;
  EXPECT_EQ(curve->points.back().version, updates);
  cluster.ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Modes, ParameterServerProgram,
                         ::testing::Values(dist::Consistency::kBulkSynchronous,
                                           dist::Consistency::kBoundedStale,
                                           dist::Consistency::kAsynchronous),
                         [](const auto& info) {
                           return std::string(dist::Name(info.param));
                         });

TEST(ParameterServerCommand, TrainsInEachModeFromOneCommand) {
  const testing::TempFolder folder;
  const std::string program = testing::ProgramPath("parameter_server");
  const tools::Outcome outcome = tools::RunProgram(
      {"baton-run", "--workers=3", "--worker_program=" + program, "--", program,
       "--data=" + WriteDigits(folder), "--mode=bsp,ssp,async", "--pushes=120",
       "--batch=16", "--json=" + folder / "results.jsonl"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream file(folder / "results.jsonl");
  std::vector<std::string> modes;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    modes.push_back(row["variant"]);
    EXPECT_GT(row["accuracy"], 0.9) << line;
    EXPECT_LT(row["loss"], 0.5) << line;
    EXPECT_EQ(row["servers"], 1);
    EXPECT_EQ(row["trainers"], 2);
    EXPECT_EQ(row["lost_trainers"], 0);
    EXPECT_EQ(row["accuracies"].back(), row["accuracy"]);
    EXPECT_EQ(row["accuracies"].size(), row["times_s"].size());
  }
  EXPECT_THAT(modes, ElementsAre("bsp", "ssp", "async"));
}

TEST(ParameterServerCommand, ResumesWithTheBitsOfATrainingThatDidNotStop) {
  const testing::TempFolder folder;
  const std::string program = testing::ProgramPath("parameter_server");
  const std::string data = WriteDigits(folder);
  const auto train = [&](std::vector<std::string> flags) {
    const std::string json = folder / "results.jsonl";
    std::vector<std::string> command = {"baton-run",
                                        "--workers=3",
                                        "--worker_program=" + program,
                                        "--",
                                        program,
                                        "--data=" + data,
                                        "--optimizer=adam",
                                        "--lr=0.002",
                                        "--batch=16",
                                        "--json=" + json};
    command.insert(command.end(), flags.begin(), flags.end());
    const tools::Outcome outcome = tools::RunProgram(command);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::ifstream file(json);
    return nlohmann::json::parse(file);
  };
  const std::string saved = "--checkpoint_dir=" + (folder / "saved");
  const auto whole = train({"--pushes=60"});
  const auto half = train({"--pushes=30", "--save_every=10", saved});
  EXPECT_EQ(half["resumed_from"], 0);
  const auto resumed = train({"--pushes=60", "--resume=latest", saved});
  EXPECT_EQ(resumed["resumed_from"], 30);
  EXPECT_NE(half["loss"], whole["loss"]);
  EXPECT_EQ(resumed["loss"], whole["loss"]);
  EXPECT_EQ(resumed["accuracy"], whole["accuracy"]);
}

// The program waits for the labels, so nobody trains yet.
TEST(ParameterServerCommand, GoesOnWithoutATrainerThatIsKilledBeforeItJoins) {
  const testing::TempFolder folder;
  const std::string data = WriteDigits(folder);
  const std::string labels = folder / "digits-labels-idx1-ubyte";
  const std::string aside = folder / "labels";
  std::filesystem::rename(labels, aside);
  ASSERT_EQ(::mkfifo(labels.c_str(), 0600), 0);
  tools::LooseWorkers workers("parameter_server",
                              {"worker1", "worker2", "worker3"});
  bool killed = false;
  const tools::Outcome outcome = tools::RunProgram(
      workers.Command({"--data=" + data, "--mode=bsp", "--pushes=120",
                       "--batch=16", "--json=" + folder / "results.jsonl"}),
      [&](const std::string& output, const tools::Process&) {
        if (killed || output.find(" serves") == std::string::npos) return;
        std::ofstream pipe(labels, std::ios::binary);
        // Whoever was there first serves.
        const bool serves = output.find("worker3 serves") != std::string::npos;
        workers.Kill(serves ? "worker2" : "worker3");
        killed = true;
        std::ifstream file(aside, std::ios::binary);
        std::filesystem::rename(aside, labels);  // which the trainer reads
        pipe << file.rdbuf();
      });
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(killed);
  std::ifstream file(folder / "results.jsonl");
  const auto row = nlohmann::json::parse(file);
  EXPECT_GT(row["accuracy"], 0.9) << outcome.output;
  EXPECT_EQ(row["trainers"], 2);
  EXPECT_THAT(outcome.output, HasSubstr("  1 trainers"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("  2 trainers")));
}

TEST(ParameterServerCommand, MeasuresPushesAndPullsBesideMemcpy) {
  const testing::TempFolder folder;
  const std::string program = testing::ProgramPath("parameter_server");
  const tools::Outcome outcome = tools::RunProgram(
      {"baton-run", "--workers=3", "--worker_program=" + program, "--", program,
       "--gradients=lenet", "--mode=bsp,async", "--pushes=5",
       "--json=" + folder / "results.jsonl"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  for (const char* const mode : {"bsp", "async"})
    EXPECT_THAT(outcome.output,
                HasSubstr(std::string(mode) + " lenet: GB/s both ways "));
  for (const char* const told :
       {", pushes alone ", ", pulls alone ", ", memcpy "})
    EXPECT_THAT(outcome.output, HasSubstr(told));
  std::ifstream file(folder / "results.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    for (const char* const rate :
         {"gb_per_s", "push_gb_per_s", "pull_gb_per_s", "memcpy_gb_per_s"})
      EXPECT_GT(row[rate], 0) << line;
  }
}

// In asynchronous mode, in which nobody waits for the one that is lost.
TEST(ParameterServerCommand, GivesAWorkerThatJoinsATrainer) {
  const testing::TempFolder folder;
  const tools::Rejoining rejoining = tools::KillAndStartATrainer(
      "parameter_server", {"--data=" + WriteDigits(folder), "--mode=async",
                           "--pushes=1000000", "--report_every=100ms"});
  EXPECT_TRUE(rejoining.trains) << rejoining.outcome.output;
}

TEST(LeNetByServers, MeasuresPushesASecond) {
  testing::LocalCluster cluster(Workers());
  dist::ServerOptions options;
  options.trainers = 2;
  const Crew crew{.servers = {"bob"}, .trainers = {"carol", "dave"}};
  const auto figures =
      MeasurePushes(cluster["alice"], crew, options, "lenet", 3);
  ASSERT_THAT(figures, IsOk());
  EXPECT_GT(figures->pushes_per_s, 0);
  EXPECT_GT(figures->pushes_alone_per_s, 0);
  EXPECT_GT(figures->pulls_alone_per_s, 0);
  EXPECT_EQ(figures->bytes, 4 * 129'068);
  EXPECT_GT(figures->memcpy_bytes_per_s, 0);
  EXPECT_THAT(MeasurePushes(cluster["alice"], crew, options, "vgg", 3),
              testing::Fails(absl::StatusCode::kInvalidArgument, "'vgg'"));
}

TEST(LeNetByServers, RefusesImagesOfAnotherSize) {
  const testing::TempFolder folder;
  folder.Write("a-labels-idx1-ubyte",
               BigEndian(0x801) + BigEndian(1) + std::string(1, '\0'));
  const std::string images = folder.Write(
      "a-images-idx3-ubyte", BigEndian(0x803) + BigEndian(1) + BigEndian(2) +
                                 BigEndian(2) + std::string(4, '\0'));
  EXPECT_THAT(LoadDigits(images),
              testing::Fails(absl::StatusCode::kInvalidArgument, "28"));
}

TEST(Charts, DrawCurvesOfOneKindTogether) {
  const std::string program =
      CurvesChart("accuracy", "it's", "seconds", "accuracy",
                  {{.name = "bsp", .x = {1, 2}, .y = {0.5, 0.75}},
                   {.name = "async", .x = {1}, .y = {0.25}}});
  EXPECT_THAT(program, HasSubstr("1 0.5\n2 0.75\n\n\n1 0.25\n"));
  EXPECT_THAT(program, HasSubstr("index 1 using 1:2"));
  EXPECT_THAT(program, HasSubstr("title 'it''s'"));
}

}  // namespace
}  // namespace baton::examples
