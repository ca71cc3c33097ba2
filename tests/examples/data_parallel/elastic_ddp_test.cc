// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The program as its users meet it, with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using OnOutput = std::function<void(const std::string&, const tools::Process&)>;

tools::Outcome RunElastic(std::vector<std::string> flags,
                          const OnOutput& on_output = nullptr) {
  const std::string program = testing::ProgramPath("elastic_ddp");
  flags.insert(flags.begin(), {"--depth=18", "--width=4", "--classes=5",
                               "--image=32", "--samples=32", "--batch=8"});
  std::vector<std::string> command = {
      "baton-run",
      "--workers=2",
      "--restarts=3",
      "--worker_program=" + program,
      "--worker_flags=" + absl::StrJoin(flags, " "),
      "--",
      program};
  command.insert(command.end(), flags.begin(), flags.end());
  return tools::RunProgram(command, on_output);
}

TEST(ElasticDdp, TrainsForItsEpochsWithAllThatThereAre) {
  const testing::TempFolder folder;
  const std::string results = folder / "results.jsonl";
  const tools::Outcome outcome =
      RunElastic({"--epochs=5", "--min_members=3", "--json=" + results,
                  "--plot=" + (folder / "charts")});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream file(results);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto run = nlohmann::json::parse(line);
  const auto members = run["members"].get<std::vector<double>>();
  EXPECT_EQ(members.size(), 20u);
  EXPECT_THAT(members, Each(3));
  const auto losses = run["losses"].get<std::vector<double>>();
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_TRUE(std::filesystem::exists(folder / "charts/loss.gp"));
}

// The worker that is killed is started again, and gets in again.
TEST(ElasticDdp, GoesOnWithoutAMemberThatIsKilledAndWithItsSuccessor) {
  enum { kWhole, kKilled, kBack } state = kWhole;
  size_t seen = 0;  // of the output, in this state
  const auto look = [&](const std::string& output,
                        const tools::Process& process) {
    if (state == kWhole) {
      const std::string words = "worker1 is in, process ";
      const size_t at = output.find(words);
      if (at == std::string::npos ||
          output.find("members 3") == std::string::npos)
        return;
      ::kill(std::atoi(output.c_str() + at + words.size()), SIGKILL);
      seen = output.size();
      state = kKilled;
    } else if (state == kKilled) {
      const size_t two = output.find("members 2", seen);
      if (two == std::string::npos ||
          output.find("members 3", two) == std::string::npos)
        return;
      state = kBack;
      SendSignal(process, SIGTERM);
    }
  };
  const tools::Outcome outcome = RunElastic({"--epochs=100000"}, look);
  EXPECT_EQ(state, kBack) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("worker1"));
  EXPECT_THAT(outcome.output, HasSubstr("started again as process"));
}

TEST(ElasticDdp, SaysWhatIsWrong) {
  const tools::Outcome outcome = RunElastic({"--batch=0"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output,
              HasSubstr("--batch=0 is too small: give 1 or more"));
  EXPECT_THAT(RunElastic({"--min_members=0"}).output,
              HasSubstr("--min_members must be 1 to --max_members"));
}

}  // namespace
}  // namespace baton::examples
