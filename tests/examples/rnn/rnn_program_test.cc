// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/checkpoint.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tests/support/within.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::HasSubstr;

// Of these words each tells the next one.
std::string WriteText(const testing::TempFolder& folder) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "my dog ran to its home\n";
  return folder.Write("text", text);
}

// Trainings of the same text. Each is saved into a folder of its name.
class RnnProgram : public ::testing::Test {
 protected:
  // `killed`, where it is one of the processes, is killed once something is
  // saved.
  tools::Outcome Train(const std::string& name,
                       const std::vector<std::string>& flags,
                       const std::string& killed = "") const {
    const std::string program = testing::ProgramPath("rnn");
    std::vector<std::string> command = {"baton-run",
                                        "--workers=2",
                                        "--may_lose_workers",
                                        "--trainer_restarts=1",
                                        "--worker_program=" + program,
                                        "--",
                                        program,
                                        "--data=" + text_,
                                        "--width=16",
                                        "--batch=4",
                                        "--length=7",
                                        "--epochs=6",
                                        "--optimizer=adam",
                                        "--lr=0.02",
                                        "--checkpoint_dir=" + folder_ / name,
                                        "--save_every=10",
                                        "--json=" + Results(name)};
    command.insert(command.end(), flags.begin(), flags.end());
    bool done = killed.empty();
    const auto look = [&](const std::string& output,
                          const tools::Process& launcher) {
      if (done || output.find("step 1/") == std::string::npos) return;
      done = true;
      EXPECT_TRUE(testing::Within(std::chrono::seconds(30), [&] {
        return !CheckpointSteps(folder_ / name).empty();
      }));
      const pid_t process = tools::WorkerOf(launcher.pid, killed);
      ASSERT_GT(process, 0);
      ::kill(process, SIGKILL);
    };
    tools::Outcome outcome = tools::RunProgram(command, look);
    EXPECT_TRUE(done) << outcome.output;
    return outcome;
  }
  std::string Results(const std::string& name) const {
    return folder_ / (name + ".jsonl");
  }
  nlohmann::json ResultOf(const std::string& name) const {
    std::ifstream file(Results(name));
    return nlohmann::json::parse(file);
  }

  const testing::TempFolder folder_;
  const std::string text_ = WriteText(folder_);
};

TEST_F(RnnProgram, LearnsThoughTheWorkerWithItsEndsIsKilled) {
  const tools::Outcome outcome = Train("saved", {"--dropout=0"}, "worker1");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(ResultOf("saved")["lost_workers"], 1) << outcome.output;
  EXPECT_LT(ResultOf("saved")["perplexity"], 1.2);
}

TEST_F(RnnProgram, ComesToTheSamePerplexityWhenItsTrainerIsKilled) {
  ASSERT_EQ(Train("whole", {"--epochs=2"}).code, 0);
  const tools::Outcome outcome =
      Train("killed", {"--epochs=2", "--resume=latest"}, "trainer");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("was killed by signal 9"));
  const nlohmann::json whole = ResultOf("whole"), resumed = ResultOf("killed");
  EXPECT_GE(resumed["resumed_from"], 10);
  EXPECT_EQ(resumed["perplexity"], whole["perplexity"]);
}

}  // namespace
}  // namespace baton::examples
