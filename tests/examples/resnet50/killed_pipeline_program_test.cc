// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// resnet50_pipeline with a journal, as a launcher runs it, whose trainer is
// killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/examples/resnet50/coloured_images.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;

class KilledPipelineProgram : public ::testing::Test {
 protected:
  // Three epochs of four steps each; `name` is of this training's files.
  std::vector<std::string> Command(const std::string& name) const {
    return {"baton-run",
            "--workers=2",
            "--trainer_restarts=3",
            "--",
            testing::ProgramPath("resnet50_pipeline"),
            "--depth=18",
            "--width=4",
            "--stages=2",
            "--batch=8",
            "--split_size=4",
            "--epochs=3",
            "--recover",
            "--data=" + images_,
            "--journal=" + folder_ / (name + "_journal"),
            "--json=" + File(name)};
  }
  std::string File(const std::string& name) const {
    return folder_ / (name + ".jsonl");
  }
  // Kills the trainer once it says each of these, in turn.
  tools::Outcome Train(const std::string& name,
                       const std::vector<std::string>& kill_at) const {
    size_t kills = 0, seen = 0;
    return tools::RunProgram(
        Command(name),
        [&](const std::string& output, const tools::Process& launcher) {
          if (kills == kill_at.size() ||
              output.find(kill_at[kills], seen) == std::string::npos)
            return;
          seen = output.size();
          ++kills;
          const pid_t trainer = tools::WorkerOf(launcher.pid, "trainer");
          ASSERT_GT(trainer, 0);
          ASSERT_EQ(::kill(trainer, SIGKILL), 0);
        });
  }
  // By epoch: the mean of its steps' losses, to the last bit, which is the same
  // whenever it is told.
  std::map<int, double> Losses(const std::string& name) const {
    std::map<int, double> losses;
    for (const std::string& line : LinesOf(File(name))) {
      const auto told = nlohmann::json::parse(line);
      const double loss = told["loss"];
      EXPECT_EQ(losses.emplace(told["epoch"], loss).first->second, loss);
    }
    return losses;
  }
  // The steps after which a training was taken up.
  static std::vector<int> TakenUp(const std::string& output) {
    const std::string before = "taken up after step ";
    std::vector<int> steps;
    for (size_t at = output.find(before); at != std::string::npos;
         at = output.find(before, at + 1)) {
      const size_t begin = at + before.size();
      int step = -1;
      EXPECT_TRUE(absl::SimpleAtoi(
          output.substr(begin, output.find('\n', begin) - begin), &step));
      steps.push_back(step);
    }
    return steps;
  }

  const testing::TempFolder folder_;
  const std::string images_ = ColouredFolder(folder_, "train");
};

TEST_F(KilledPipelineProgram, GoesOnAtTheNextStepWithTheSameLosses) {
  const tools::Outcome whole = Train("whole", {});
  ASSERT_EQ(whole.code, 0) << whole.output;
  EXPECT_THAT(whole.output, Not(HasSubstr("taken up")));
  // After the first step, and in the second epoch. A step that was told may
  // have to be done again: it is noted with the next one.
  const tools::Outcome killed =
      Train("killed", {"epoch 1/3  step 1/", "epoch 2/3  step 1/"});
  ASSERT_EQ(killed.code, 0) << killed.output;
  EXPECT_THAT(TakenUp(killed.output), ElementsAre(Ge(0), Ge(4)))
      << killed.output;
  const std::map<int, double> wanted = Losses("whole");
  ASSERT_EQ(wanted.size(), 3u);
  EXPECT_EQ(Losses("killed"), wanted) << killed.output;
  // The training is over, so its journal is no other one's.
  const tools::Outcome again = Train("killed", {});
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_THAT(again.output, Not(HasSubstr("taken up")));
  EXPECT_EQ(Losses("killed"), wanted);
}

}  // namespace
}  // namespace baton::examples
