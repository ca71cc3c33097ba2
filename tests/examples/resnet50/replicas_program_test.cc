// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Replicas of a pipeline as users meet them, with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/program_path.h"
#include "tests/tools/programs/loose_workers.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> kFlags = {
    "--depth=18",  "--width=4",    "--image=32",
    "--classes=4", "--batch=8",    "--split_size=2",
    "--batches=1", "--replicas=2", "--variants=pipelined",
    "--stages=2"};

TEST(ReplicasProgram, NamesAWorkerOfOneOfThemThatIsKilled) {
  tools::LooseWorkers workers(testing::ProgramPath("baton-worker"),
                              {"worker1", "worker2", "worker3", "worker4"});
  std::vector<std::string> flags = kFlags;
  flags.push_back("--repeat=1000000");
  std::vector<std::string> command = workers.Command(flags);
  command[0] = testing::ProgramPath("resnet50_pipeline");
  Clock::time_point killed;
  bool is_killed = false;
  const tools::Outcome outcome = tools::RunProgram(
      command, [&](const std::string& output, const tools::Process&) {
        if (is_killed || output.find("loss") == std::string::npos) return;
        is_killed = true;
        killed = Clock::now();
        workers.Kill("worker3");
      });
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("worker3"));
  const std::chrono::duration<double> took = Clock::now() - killed;
  std::printf("from the kill to the program's end: %.0f ms\n",
              1e3 * took.count());
  EXPECT_LT(took.count(), 8);  // a step itself may take ten minutes
}

TEST(ReplicasProgram, RefusesWhatDoesNotDivideTheBatch) {
  std::vector<std::string> command = kFlags;
  command.insert(command.begin(), "resnet50_pipeline");
  command.push_back("--batch=9");
  const tools::Outcome outcome = tools::RunProgram(command);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("--replicas takes what divides"));
}

}  // namespace
}  // namespace baton::examples
