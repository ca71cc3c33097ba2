// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The program as its users meet it, with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/examples/data_parallel/trace_spans.h"
#include "tests/examples/rnn/sentences.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/loose_workers.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class DdpRpcHybridProgram : public ::testing::Test {
 protected:
  DdpRpcHybridProgram()
      : flags_({"--data=" + folder_.Write("text", testing::Sentences(600)),
                "--width=16", "--dropout=0", "--length=7", "--lr=0.02",
                "--row_lr=0.02"}) {}
  std::vector<std::string> Flags(std::vector<std::string> more) const {
    more.insert(more.begin(), flags_.begin(), flags_.end());
    return more;
  }
  using OnOutput =
      std::function<void(const std::string&, const tools::Process&)>;
  // `launch` has more flags of baton-run.
  static tools::Outcome Run(int workers, const std::vector<std::string>& flags,
                            const std::vector<std::string>& launch = {},
                            const OnOutput& on_output = nullptr) {
    const std::string program = testing::ProgramPath("ddp_rpc_hybrid");
    std::vector<std::string> command = {"baton-run",
                                        "--workers=" + std::to_string(workers),
                                        "--worker_program=" + program};
    command.insert(command.end(), launch.begin(), launch.end());
    command.insert(command.end(), {"--", program});
    command.insert(command.end(), flags.begin(), flags.end());
    return tools::RunProgram(command, on_output);
  }
  // A line of results for each variant.
  std::vector<nlohmann::json> Train(int workers, std::vector<std::string> flags,
                                    const std::vector<std::string>& launch = {},
                                    const OnOutput& on_output = nullptr) {
    const std::string results = folder_ / "results.jsonl";
    flags.push_back("--json=" + results);
    const tools::Outcome outcome =
        Run(workers, Flags(flags), launch, on_output);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::ifstream file(results);
    std::vector<nlohmann::json> lines;
    std::string line;
    while (std::getline(file, line))
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  // One of three workers; whoever was there first serves.
  static std::string ServerIn(const std::string& output) {
    const size_t serves = output.find(" serves");
    return serves == std::string::npos ? "" : output.substr(serves - 7, 7);
  }
  static std::string TrainerIn(const std::string& output) {
    return ServerIn(output) == "worker2" ? "worker3" : "worker2";
  }

  const testing::TempFolder folder_;
  const std::vector<std::string> flags_;
};

TEST_F(DdpRpcHybridProgram, LearnsWhatOneTrainerLearnsOfAllColumns) {
  const auto two = Train(4, {"--servers=2", "--batch=4", "--epochs=2"});
  const auto one = Train(3, {"--servers=2", "--batch=8", "--epochs=2"});
  ASSERT_EQ(two.size(), 1u);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(two[0]["trainers"], 2);
  EXPECT_EQ(one[0]["trainers"], 1);
  EXPECT_EQ(two[0]["servers"], 2);
  const std::vector<double> losses = two[0]["losses"], same = one[0]["losses"];
  ASSERT_EQ(losses.size(), same.size());
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(losses[i], same[i], 1e-4) << i;
  EXPECT_GT(losses.front(), 2.5);
  EXPECT_LT(two[0]["perplexity"], 1.6);
}

TEST_F(DdpRpcHybridProgram, TellsHowItScales) {
  const auto results =
      Train(3, {"--batch=4", "--steps=6", "--variants=single,ddp"});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0]["variant"], "single");
  EXPECT_GT(results[1]["efficiency"], 0);
  EXPECT_GT(results[1]["waited_share"], 0);
  EXPECT_LT(results[1]["waited_share"], 1);
  EXPECT_EQ(results[1]["losses"].size(), 6u);
}

TEST_F(DdpRpcHybridProgram, TracesAStepOfAllTrainers) {
  const std::string path = folder_ / "trace.json";
  const tools::Outcome outcome =
      Run(3, Flags({"--batch=4", "--steps=3", "--trace=" + path}));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<TracedSpan> spans = SpansOf(path);
  int trainers = 0;
  for (const std::string worker : {"worker1", "worker2", "worker3"}) {
    const auto backward = SpansNamed(spans, worker, "backward");
    if (backward.empty()) continue;  // the server
    ++trainers;
    EXPECT_EQ(backward.size(), 1u) << worker;
    EXPECT_GT(SpansNamed(spans, worker, "all_reduce mean f32[").size(), 0u);
  }
  EXPECT_EQ(trainers, 2);
}

TEST_F(DdpRpcHybridProgram, LearnsThoughATrainerIsKilledAndItsSuccessorJoins) {
  for (const bool again : {false, true}) {
    enum { kWhole, kKilled, kBack } state = kWhole;
    size_t seen = 0;  // of the output, in this state
    const auto look = [&](const std::string& output,
                          const tools::Process& launcher) {
      const char* const next = state == kKilled ? "1 trainers" : "2 trainers";
      const size_t at = output.find(next, seen);
      if (at == std::string::npos) return;
      seen = at + 1;
      if (state == kWhole) {
        const pid_t trainer = tools::WorkerOf(launcher.pid, TrainerIn(output));
        ASSERT_GT(trainer, 0);
        ::kill(trainer, SIGKILL);
        state = kKilled;
      } else {
        state = kBack;
      }
    };
    const auto results =
        Train(3, {"--batch=2", "--epochs=4"},
              {again ? "--restarts=1" : "--may_lose_workers"}, look);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0]["lost_trainers"], 1);
    EXPECT_EQ(state, kBack);
    // With one that is started again there were two trainers once more.
    EXPECT_EQ(results[0]["last_trainers"], again ? 2 : 1);
    EXPECT_EQ(results[0]["perplexities"].size(), 4u);
    EXPECT_LT(results[0]["perplexity"], 1.6);
    std::filesystem::remove(folder_ / "results.jsonl");
  }
}

TEST_F(DdpRpcHybridProgram, SaysThatAllTrainersAreLost) {
  tools::LooseWorkers workers(testing::ProgramPath("ddp_rpc_hybrid"),
                              {"worker1", "worker2"});
  bool killed = false;
  const tools::Outcome outcome = tools::RunProgram(
      workers.Command(Flags({"--batch=2", "--epochs=10000"})),
      [&](const std::string& output, const tools::Process&) {
        if (killed || output.find("loss") == std::string::npos) return;
        killed = true;
        workers.Kill(ServerIn(output) == "worker2" ? "worker1" : "worker2");
      });
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("no trainer is left"));
}

TEST_F(DdpRpcHybridProgram, NamesAServerThatIsLost) {
  tools::LooseWorkers workers(testing::ProgramPath("ddp_rpc_hybrid"),
                              {"worker1", "worker2", "worker3"});
  std::string server;
  Clock::time_point killed;
  const tools::Outcome outcome = tools::RunProgram(
      workers.Command(Flags({"--batch=2", "--epochs=10000"})),
      [&](const std::string& output, const tools::Process&) {
        if (!server.empty() || output.find("loss") == std::string::npos) return;
        server = ServerIn(output);
        killed = Clock::now();
        workers.Kill(server);
      });
  const std::chrono::duration<double> seconds = Clock::now() - killed;
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("server " + server + " is lost"));
  EXPECT_LT(seconds.count(), 5);
}

TEST_F(DdpRpcHybridProgram, NamesAFlagThatIsWrong) {
  const tools::Outcome outcome = Run(2, Flags({"--row_optimizer=no-such"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("--row_optimizer"));
}

}  // namespace
}  // namespace baton::examples
