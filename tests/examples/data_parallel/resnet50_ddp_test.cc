// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The program as its users meet it, with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/examples/data_parallel/trace_spans.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

tools::Outcome RunDdp(std::vector<std::string> flags, int workers = 2) {
  const std::string program = testing::ProgramPath("resnet50_ddp");
  std::vector<std::string> command = {"baton-run",
                                      absl::StrCat("--workers=", workers),
                                      "--worker_program=" + program,
                                      "--",
                                      program,
                                      "--depth=18",
                                      "--width=4",
                                      "--classes=5",
                                      "--image=32",
                                      "--batch=4",
                                      "--steps=14",
                                      "--warm_up=1"};
  command.insert(command.end(), flags.begin(), flags.end());
  return tools::RunProgram(command);
}

TEST(Resnet50Ddp, TrainsReplicasThatStayTheSame) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  const tools::Outcome outcome =
      RunDdp({"--variants=single,ddp", "--json=" + results});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("scaling efficiency: "));
  std::ifstream file(results);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto single = nlohmann::json::parse(line);
  ASSERT_TRUE(std::getline(file, line));
  const auto ddp = nlohmann::json::parse(line);
  EXPECT_EQ(single["workers"], 1);
  EXPECT_EQ(ddp["workers"], 2);
  EXPECT_EQ(ddp["losses"].size(), 15u);
  EXPECT_GT(ddp["gradient_bytes"], 0);
  EXPECT_GT(ddp["waited_share"], 0);
  EXPECT_LT(ddp["waited_share"], 1);
  EXPECT_THAT(outcome.output,
              ContainsRegex("ddp: .*% of the time waits for gradients"));
  // Half of its images are the single one's, and its weights are so at first.
  EXPECT_NE(single["losses"][0], ddp["losses"][0]);
  EXPECT_LT(ddp["losses"][14], ddp["losses"][0]);
}

TEST(Resnet50Ddp, DividesTheOptimizersState) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  ASSERT_EQ(
      RunDdp({"--variants=ddp,zero", "--optimizer=adam", "--json=" + results})
          .code,
      0);
  std::ifstream file(results);
  std::string line;
  std::vector<int64_t> bytes;
  std::vector<double> losses;
  while (std::getline(file, line)) {
    const auto result = nlohmann::json::parse(line);
    bytes.push_back(result["state_bytes"]);
    losses.push_back(result["losses"][3]);
  }
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_NEAR(static_cast<double>(bytes[1]) / bytes[0], 0.5, 0.01);
  EXPECT_NEAR(losses[1], losses[0], 1e-3);
}

double FirstLoss(const std::vector<std::string>& flags) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  std::vector<std::string> all = flags;
  all.push_back("--json=" + results);
  const tools::Outcome outcome = RunDdp(all);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream file(results);
  return nlohmann::json::parse(file)["losses"][0];
}

TEST(Resnet50Ddp, NormalisesTheBatchesOfAllAsOne) {
  const double own = FirstLoss({"--steps=1"});
  const double together = FirstLoss({"--steps=1", "--sync_batch_norm"});
  EXPECT_NE(together, own);
  EXPECT_NEAR(together, own, 1);
}

TEST(Resnet50Ddp, AveragesModelsNowAndThen) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  const tools::Outcome outcome =
      RunDdp({"--variants=ddp,periodic,gossip", "--average_every=3",
              "--json=" + results});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream file(results);
  std::string line;
  std::vector<std::vector<double>> losses;
  while (std::getline(file, line)) {
    const auto result = nlohmann::json::parse(line);
    EXPECT_EQ(result["gradient_bytes"] > 0, result["variant"] == "ddp");
    losses.push_back(result["losses"]);
  }
  ASSERT_EQ(losses.size(), 3u);
  for (const std::vector<double>& each : losses) {
    EXPECT_DOUBLE_EQ(each.front(), losses[0].front());
    EXPECT_LT(each.back(), each.front());
  }
  EXPECT_NE(losses[1].back(), losses[0].back());
}

TEST(Resnet50Ddp, HalvesWhatTravels) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  std::vector<int64_t> bytes;
  for (const std::string travel : {"fp32", "bf16"}) {
    ASSERT_EQ(RunDdp({"--gradients=" + travel, "--json=" + results}).code, 0);
    std::ifstream file(results);
    bytes.push_back(nlohmann::json::parse(file)["gradient_bytes"]);
  }
  EXPECT_EQ(bytes[0], 2 * bytes[1]);
}

TEST(Resnet50Ddp, SendsThinMatrices) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  std::vector<nlohmann::json> found;
  for (const std::string columns : {"0", "2"}) {
    ASSERT_EQ(RunDdp({"--power_sgd_rank=" + columns, "--json=" + results}).code,
              0);
    std::ifstream file(results);
    found.push_back(nlohmann::json::parse(file));
  }
  EXPECT_LT(found[1]["gradient_bytes"], found[0]["gradient_bytes"]);
  EXPECT_EQ(found[1]["losses"][0], found[0]["losses"][0]);
  EXPECT_LT(found[1]["losses"][14], found[1]["losses"][0]);
}

// Nobody ends an all-reduce before all have begun it, which only one clock for
// both shows.
TEST(Resnet50Ddp, TracesComputeAndCollectivesByOneClock) {
  const testing::TempFolder folder;
  const std::string path = folder / "trace.json";
  const tools::Outcome outcome =
      RunDdp({"--width=32", "--bucket_mb=1", "--steps=1", "--trace=" + path});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<TracedSpan> spans = SpansOf(path);
  const std::vector<std::string> workers = {"worker1", "worker2"};
  std::vector<std::vector<TracedSpan>> reductions;
  int beside = 0;  // reductions that begin while backward runs
  for (const std::string& worker : workers) {
    std::vector<TracedSpan> step;
    for (const std::string phase :
         {"forward", "backward", "await reductions", "optimizer"}) {
      const auto found = SpansNamed(spans, worker, phase);
      ASSERT_EQ(found.size(), 1u) << worker << " " << phase;
      EXPECT_EQ(found[0].track, "data parallel");
      if (!step.empty()) {
        EXPECT_GE(found[0].begin, step.back().end) << worker << " " << phase;
      }
      step.push_back(found[0]);
    }
    reductions.push_back(SpansNamed(spans, worker, "all_reduce mean f32["));
    ASSERT_GT(reductions.back().size(), 3u) << worker;
    for (const TracedSpan& reduction : reductions.back()) {
      EXPECT_EQ(reduction.track, "collectives of worker1+worker2");
      EXPECT_GT(reduction.begin, step[1].begin);
      EXPECT_LT(reduction.end, step[2].end);
      beside += reduction.begin < step[1].end ? 1 : 0;
    }
  }
  EXPECT_GT(beside, 0);
  ASSERT_EQ(reductions[0].size(), reductions[1].size());
  for (size_t i = 0; i < reductions[0].size(); ++i) {
    const TracedSpan &a = reductions[0][i], &b = reductions[1][i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_LT(a.begin, b.end + a.within + b.within) << i;
    EXPECT_LT(b.begin, a.end + a.within + b.within) << i;
  }
}

TEST(Resnet50Ddp, TracesPipelinesThatAreCopies) {
  const testing::TempFolder folder;
  const std::string path = folder / "trace.json";
  const tools::Outcome outcome = RunDdp(
      {"--pipeline_stages=2", "--split_size=2", "--steps=1", "--trace=" + path},
      4);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<TracedSpan> spans = SpansOf(path);
  for (const std::string worker :
       {"worker1", "worker2", "worker3", "worker4"}) {
    for (const std::string name : {"all_reduce", "await reductions"})
      EXPECT_GT(SpansNamed(spans, worker, name).size(), 0u) << worker << name;
  }
}

TEST(Resnet50Ddp, NamesATraceThatCannotBeWrittenBeforeItTrains) {
  const tools::Outcome outcome = RunDdp({"--trace=/no/such/folder/trace.json"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("/no/such/folder/trace.json"));
}

TEST(Resnet50Ddp, TrainsCopiesThatArePipelines) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  const tools::Outcome outcome =
      RunDdp({"--pipeline_stages=2", "--split_size=2", "--variants=single,ddp",
              "--json=" + results},
             4);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("ddp: scaling efficiency: "));
  EXPECT_THAT(outcome.output, HasSubstr("ddp: schedule 1f1b, bubble "));
  EXPECT_THAT(outcome.output,
              ContainsRegex("ddp: .*% of the time waits for gradients"));
  std::ifstream file(results);
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(file, line);)
    found.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["workers"], 2);
  EXPECT_EQ(found[1]["workers"], 4);
  EXPECT_EQ(found[1]["replicas"], 2);
  EXPECT_GT(found[1]["efficiency"], 0);
  EXPECT_GT(found[1]["waited_share"], 0);
  EXPECT_LT(found[1]["waited_share"], 1);
  EXPECT_GT(found[1]["images_per_s"], 0);
  for (const auto& each : found) {
    EXPECT_EQ(each["pipeline_stages"], 2);
    EXPECT_EQ(each["repeats"], 14);
    const std::vector<double> losses = each["losses"];
    EXPECT_LT(losses.back(), losses.front());
  }
  // Half of its images are the single one's, and its weights are so at first.
  EXPECT_NE(found[0]["losses"][0], found[1]["losses"][0]);
}

TEST(Resnet50Ddp, NamesWhatGoesNotWithPipelines) {
  for (const std::string flag :
       {"gradients=bf16", "sync_batch_norm", "variants=zero", "data=images"}) {
    const tools::Outcome outcome = RunDdp({"--pipeline_stages=2", "--" + flag});
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_THAT(outcome.output, HasSubstr("pipeline_stages")) << flag;
  }
}

TEST(Resnet50Ddp, NamesAFlagThatNoVariantReads) {
  const std::vector<std::vector<std::string>> wrong = {
      {"average_every=3", "variants=single,ddp,zero",
       "--average_every goes with --variants=periodic or gossip"},
      {"average_every=3", "pipeline_stages=2",
       "--average_every goes with --variants=periodic or gossip"},
      {"bucket_mb=1", "variants=single,periodic",
       "--bucket_mb goes with --variants=ddp or zero"},
      {"gradients=bf16", "variants=single",
       "--gradients goes with --variants=ddp"},
      {"power_sgd_rank=2", "variants=single,gossip",
       "--power_sgd_rank goes with --variants=ddp"}};
  for (const auto& each : wrong) {
    const tools::Outcome outcome = RunDdp({"--" + each[0], "--" + each[1]});
    EXPECT_EQ(outcome.code, 2) << each[0];
    EXPECT_THAT(outcome.output, HasSubstr(each[2]));
  }
}

TEST(Resnet50Ddp, NamesAFlagThatIsWrong) {
  const tools::Outcome outcome = RunDdp({"--gradients=fp8"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output,
              HasSubstr("--gradients takes fp32 or bf16, not 'fp8'"));
}

}  // namespace
}  // namespace baton::examples
