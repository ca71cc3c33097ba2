// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The program as its users meet it, with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/loose_workers.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::HasSubstr;

// To the program's own goal, at which CartPole counts as solved.
TEST(RlProgram, SolvesCartPoleThoughAnObserverIsKilled) {
  const testing::TempFolder folder;
  const std::string program = testing::ProgramPath("rl");
  bool killed = false;
  const tools::Outcome outcome = tools::RunProgram(
      {"baton-run", "--workers=3", "--may_lose_workers",
       "--worker_program=" + program, "--", program,
       "--json=" + folder / "results.jsonl"},
      [&](const std::string& output, const tools::Process& launcher) {
        if (killed || output.find("round   2") == std::string::npos) return;
        killed = true;
        const pid_t worker = tools::WorkerOf(launcher.pid, "worker2");
        ASSERT_GT(worker, 0);
        ::kill(worker, SIGKILL);
      });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(killed);
  EXPECT_THAT(outcome.output, HasSubstr("was killed by signal 9"));
  EXPECT_THAT(outcome.output, HasSubstr("observer_latency_us"));
  std::ifstream file(folder / "results.jsonl");
  const auto line = nlohmann::json::parse(file);
  EXPECT_EQ(line["solved"], true);
  EXPECT_GT(line["reward"], 475);
  EXPECT_EQ(line["percentiles"], (std::vector<double>{50, 75, 90, 95}));
  for (const char* figure : {"agent_latency_us", "agent_requests_per_s",
                             "observer_latency_us", "observer_requests_per_s"})
    EXPECT_EQ(line[figure].size(), 4u) << figure;
  EXPECT_EQ(line["lost_observers"], 1);
  EXPECT_EQ(line["observers"], 2);
}

TEST(RlProgram, SolvesCartPoleThoughItsAgentIsKilled) {
  const testing::TempFolder folder;
  const std::string program = testing::ProgramPath("rl");
  int kills = 0;
  const tools::Outcome outcome = tools::RunProgram(
      {"baton-run", "--workers=2", "--trainer_restarts=2",
       "--worker_program=" + program, "--", program,
       "--checkpoint_dir=" + folder / "saved", "--resume=latest",
       "--json=" + folder / "results.jsonl"},
      [&](const std::string& output, const tools::Process& launcher) {
        if (kills == 2 || output.find(kills == 0 ? "round   4" : "round   8") ==
                              std::string::npos)
          return;
        const pid_t agent = tools::WorkerOf(launcher.pid, "trainer");
        ASSERT_GT(agent, 0);
        ::kill(agent, SIGKILL);
        ++kills;
      });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(kills, 2);
  std::ifstream file(folder / "results.jsonl");
  const auto line = nlohmann::json::parse(file);
  EXPECT_EQ(line["solved"], true);
  EXPECT_GT(line["reward"], 475);
  EXPECT_GE(line["resumed_from"], 7);
}

TEST(RlProgram, GivesAWorkerThatJoinsAnObserver) {
  tools::LooseWorkers workers("rl", {"worker1"});
  bool added = false, plays = false;
  const tools::Outcome outcome = tools::RunProgram(
      workers.Command({"--goal=501", "--rounds=1000000"}),
      [&](const std::string& output, const tools::Process& process) {
        if (!added && output.find("  1 observers") != std::string::npos) {
          added = true;
          workers.Add("newcomer");
        } else if (output.find("  2 observers") != std::string::npos) {
          plays = true;
          SendSignal(process, SIGTERM);
        }
      });
  EXPECT_TRUE(plays) << outcome.output;
}

TEST(RlProgram, TellsWhatIsWrong) {
  const tools::Outcome outcome = tools::RunProgram(
      {"rl", "--inference=guess", "--peers=trainer=127.0.0.1:1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("--inference"));
  const auto refused = [](const std::vector<std::string>& flags) {
    std::vector<std::string> command = {"rl", "--peers=trainer=127.0.0.1:1"};
    command.insert(command.end(), flags.begin(), flags.end());
    const tools::Outcome of_flags = tools::RunProgram(command);
    EXPECT_EQ(of_flags.code, 2);
    return of_flags.output;
  };
  EXPECT_THAT(refused({"--resume=latest"}),
              HasSubstr("--checkpoint_dir is missing"));
  EXPECT_THAT(refused({"--checkpoint_dir=saved", "--inference=plain,batched"}),
              HasSubstr("--inference must be one with --checkpoint_dir"));
  EXPECT_THAT(refused({"--checkpoint_dir=saved", "--requests=9"}),
              HasSubstr("--checkpoint_dir does not go with --requests"));
}

}  // namespace
}  // namespace baton::examples
