// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_device.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Pointwise;

TEST(BatonRun, GivesTheTrainersCode) {
  EXPECT_EQ(RunProgram({"baton-run", "--workers=1", "--", "false"}).code, 1);
  EXPECT_EQ(
      RunProgram({"baton-run", "--workers=2", "--", "/bin/sh", "-c", "exit 9"})
          .code,
      9);
}

TEST(BatonRun, WaitsForItsWorkersWithoutEnd) {
  const Outcome outcome =
      RunProgram({"baton-run", "--workers=1", "--grace=inf", "--", "true"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, Not(HasSubstr("killing it")));
}

TEST(BatonRun, TellsTheTrainerWhereTheClusterIs) {
  const Outcome outcome = RunProgram(
      {"baton-run", "--workers=2", "--", "/bin/sh", "-c",
       "echo $BATON_NAME of $BATON_WORLD_SIZE at $BATON_RENDEZVOUS"});
  EXPECT_THAT(outcome.output,
              ContainsRegex("trainer of 3 at 127.0.0.1:[0-9]+"));
}

// This process, and what it starts, on one core.
class OnOneCore {
 public:
  OnOneCore() {
    ::sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(AllowedCores().front(), &one);
    ::sched_setaffinity(0, sizeof(one), &one);
  }
  ~OnOneCore() { ::sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_;
};

TEST(BatonRun, HasComputeThreadsSpinForLittleUnlessTheUserSaysHow) {
  const auto spins = [] {
    return RunProgram({"baton-run", "--workers=1", "--", "/bin/sh", "-c",
                       "echo spins $GOMP_SPINCOUNT."})
        .output;
  };
  ::unsetenv("OMP_WAIT_POLICY");
  EXPECT_THAT(spins(), HasSubstr("spins 2000."));
  ::setenv("GOMP_SPINCOUNT", "7", 1);
  EXPECT_THAT(spins(), HasSubstr("spins 7."));
  ::unsetenv("GOMP_SPINCOUNT");
  ::setenv("OMP_WAIT_POLICY", "passive", 1);  // as other tests have it
  EXPECT_THAT(spins(), HasSubstr("spins ."));
}

// What a worker of two finds for its compute threads.
std::string ThreadsOfAWorker() {
  const testing::TempFolder folder;
  const std::string found = folder / "found";
  const std::string worker = folder.Write(
      "worker",
      absl::StrCat("#!/bin/sh\necho threads $OMP_NUM_THREADS. > ", found,
                   ".$$ && mv ", found, ".$$ ", found, " && exec sleep 60\n"));
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  return RunProgram({"baton-run", "--workers=2",
                     absl::StrCat("--worker_program=", worker), "--", "/bin/sh",
                     "-c",
                     absl::StrCat("until cat ", found, " 2>&-; do :; done")})
      .output;
}

TEST(BatonRun, SharesTheCoresEvenlyAmongTheComputeThreadsOfWorkers) {
  const OnOneCore one;
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_THAT(ThreadsOfAWorker(), HasSubstr("threads 1."));
  ::setenv("OMP_NUM_THREADS", "5", 1);
  EXPECT_THAT(ThreadsOfAWorker(), HasSubstr("threads 5."));
  ::unsetenv("OMP_NUM_THREADS");
}

TEST(BatonRun, RefusesWhatItCannotDo) {
  EXPECT_EQ(RunProgram({"baton-run"}).code, 2);
  EXPECT_EQ(RunProgram({"baton-run", "--workers=0", "--", "true"}).code, 2);
  EXPECT_THAT(RunProgram({"baton-run", "--workers=9999", "--", "true"}).output,
              HasSubstr("--workers must be 1 to 1024"));
  EXPECT_EQ(RunProgram({"baton-run", "--grace=0.5ms", "--", "true"}).code, 2);
  EXPECT_THAT(
      RunProgram({"baton-run", "--cores_per_worker=100000", "--", "true"})
          .output,
      HasSubstr("cores"));
  EXPECT_THAT(RunProgram({"baton-run", "--device=tpu", "--", "true"}).output,
              HasSubstr("--device: device \"tpu\""));
  EXPECT_THAT(RunProgram({"baton-run", "--dtype=bf16", "--", "true"}).output,
              HasSubstr("--dtype bf16 needs --device=cuda"));
  EXPECT_THAT(RunProgram({"baton-run", "--nodes=2", "--max_workers=4",
                          "--rendezvous=etcd://127.0.0.1:1", "--", "true"})
                  .output,
              HasSubstr("give --max_members"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"baton-run", "--", "toy_modle"},
        {"baton-run", "--worker_program=toy_modle", "--", "true"}}) {
    const Outcome outcome = RunProgram(wrong);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.output,
              "baton-run: there is no program 'toy_modle' beside baton-run or "
              "on PATH (do you mean toy_model?)\n");
  }
  const Outcome outcome = RunProgram({"baton-run", "--", "/no/such/trainer"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("/no/such/trainer"));
}

// Returns the losses that toy_model prints. It must write them for TensorBoard,
// too.
std::vector<double> ToyLosses(const std::string& device) {
  const testing::TempFolder folder;
  const Outcome outcome =
      RunProgram({"baton-run", "--workers=2", "--device=" + device,
                  "--worker_program=toy_model", "--", "toy_model",
                  "--device=" + device, "--tensorboard=" + folder.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_FALSE(std::filesystem::is_empty(folder / "toy_model"));
  std::vector<double> losses;
  const std::regex line("step [0-9]+: loss ([0-9.]+)");
  for (std::sregex_iterator match(outcome.output.begin(), outcome.output.end(),
                                  line);
       match != std::sregex_iterator(); ++match) {
    losses.push_back(std::stod((*match)[1]));
  }
  return losses;
}

TEST(BatonRun, TrainsOverTwoWorkers) {
  const std::vector<double> losses = ToyLosses("cpu");
  ASSERT_EQ(losses.size(), 20);
  EXPECT_LT(losses.back(), losses.front() / 2);
  if (test::TestDevice().is_cpu()) return;
  // Each worker has a GPU, if there are two.
  EXPECT_THAT(ToyLosses("cuda"), Pointwise(DoubleNear(1e-3), losses));
}

TEST(BatonRun, TracesOneStepOfAPipelineAtAllWorkers) {
  const std::string file =
      absl::StrCat(::testing::TempDir(), "/pipeline_trace_", ::getpid());
  const Outcome outcome = RunProgram(
      {"baton-run", "--workers=2", "--",
       testing::ProgramPath("resnet50_pipeline"), "--depth=18", "--image=32",
       "--batch=8", "--split_size=4", "--batches=1", "--repeat=1",
       "--variants=pipelined", "--classes=10", "--trace=" + file});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream in(file);
  const auto trace = nlohmann::json::parse(in, nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  for (const char* worker : {"trainer", "worker1", "worker2"})
    EXPECT_TRUE(trace["otherData"].contains(worker)) << worker;
  std::map<int, nlohmann::json> sent;
  std::set<std::string> spans;
  int messages = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "s") sent[event["id"]] = event;
    if (event.value("cat", "") == "span") spans.insert(event["name"]);
    if (event["ph"] == "X") messages += event["cat"] == "message";
  }
  // Processes of the trace that a request joins: the trainer and each worker.
  // The workers say nothing to each other, as windows connect them.
  std::set<std::pair<int, int>> joined;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "f") continue;
    const auto& begin = sent.at(event["id"]);
    EXPECT_LE(begin["ts"].get<double>(), event["ts"].get<double>()) << event;
    if (event["name"] == "request") joined.emplace(begin["pid"], event["pid"]);
  }
  EXPECT_THAT(spans, IsSupersetOf({"0F0", "0F1", "0BW0", "0BW1", "1F0", "1F1",
                                   "1BW0", "1BW1"}));
  EXPECT_GT(messages, 0);  // what stages pass goes through windows
  EXPECT_THAT(joined, IsSupersetOf({std::pair(1, 2), std::pair(1, 3)}));
  EXPECT_FALSE(joined.contains({2, 3}));
}

TEST(BatonRun, EndsAllWhenAWorkerFails) {
  const Outcome outcome =
      RunProgram({"baton-run", "--workers=2", "--worker_flags=--nonsense", "--",
                  "tail", "-f", "/dev/null"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output,
              ContainsRegex("worker[12] \\(process [0-9]+\\) ended with code "
                            "2; 1 of 2 workers are left; stopping the others"));
}

}  // namespace
}  // namespace baton::tools
