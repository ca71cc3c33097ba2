// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// resnet50_pipeline, as a launcher runs it, whose trainer or workers are
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
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;

class KilledPipelineProgram : public ::testing::Test {
 protected:
  using Flags = std::vector<std::string>;
  struct Kill {
    std::string at;  // once this is said
    std::vector<std::string> names;
  };
  // Three epochs of four steps each; `name` is of this training's files.
  Flags Command(const std::string& name, const Flags& launcher,
                const Flags& program) const {
    Flags all = {"baton-run", "--workers=2"};
    all.insert(all.end(), launcher.begin(), launcher.end());
    const Flags training = {"--",
                            testing::ProgramPath("resnet50_pipeline"),
                            "--depth=18",
                            "--width=4",
                            "--stages=2",
                            "--batch=8",
                            "--split_size=4",
                            "--epochs=3",
                            "--recover",
                            "--data=" + images_,
                            "--json=" + File(name)};
    all.insert(all.end(), training.begin(), training.end());
    all.insert(all.end(), program.begin(), program.end());
    return all;
  }
  std::string File(const std::string& name) const {
    return folder_ / (name + ".jsonl");
  }
  // The kills come in turn.
  static tools::Outcome Train(const Flags& command,
                              const std::vector<Kill>& kills) {
    size_t done = 0, seen = 0;
    return tools::RunProgram(command, [&](const std::string& output,
                                          const tools::Process& launcher) {
      if (done == kills.size() ||
          output.find(kills[done].at, seen) == std::string::npos)
        return;
      seen = output.size();
      std::vector<pid_t> killed;
      for (const std::string& name : kills[done++].names)
        killed.push_back(tools::WorkerOf(launcher.pid, name));
      for (const pid_t pid : killed) {
        ASSERT_GT(pid, 0);
        ASSERT_EQ(::kill(pid, SIGKILL), 0);
      }
    });
  }
  // Of a training of which nobody is killed.
  std::map<int, double> Undisturbed() const {
    const tools::Outcome whole = Train(Command("whole", {}, {}), {});
    EXPECT_EQ(whole.code, 0) << whole.output;
    const auto losses = Losses("whole");
    EXPECT_EQ(losses.size(), 3u);
    return losses;
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
  const std::map<int, double> wanted = Undisturbed();
  const Flags command = Command("killed", {"--trainer_restarts=3"},
                                {"--journal=" + folder_ / "journal"});
  // After the first step, and in the second epoch. Steps that were told may
  // have to be done again: a state is kept as soon as the last one is safe.
  const tools::Outcome killed =
      Train(command, {{"epoch 1/3  step 1/", {"trainer"}},
                      {"epoch 2/3  step 1/", {"trainer"}}});
  ASSERT_EQ(killed.code, 0) << killed.output;
  EXPECT_THAT(TakenUp(killed.output), ElementsAre(Ge(0), Gt(0)))
      << killed.output;
  EXPECT_EQ(Losses("killed"), wanted) << killed.output;
  // The training is over, so its journal is no other one's.
  const tools::Outcome again = Train(command, {});
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_THAT(again.output, Not(HasSubstr("taken up")));
  EXPECT_EQ(Losses("killed"), wanted);
}

TEST_F(KilledPipelineProgram, HasTheSameLossesWhenWorkersAreKilled) {
  const tools::Outcome killed =
      Train(Command("killed", {"--spares=1", "--restarts=3"}, {}),
            {{"epoch 1/3  step 1/", {"worker1"}},
             {"epoch 2/3  step 1/", {"worker2"}}});
  ASSERT_EQ(killed.code, 0) << killed.output;
  EXPECT_THAT(killed.output, HasSubstr("recovered: worker1 lost"));
  EXPECT_THAT(killed.output, HasSubstr("recovered: worker2 lost"));
  EXPECT_EQ(Losses("killed"), Undisturbed()) << killed.output;
}

// Each keeps the other's state. The save of step 8 had to wait for that of
// step 6, in the middle of an epoch.
TEST_F(KilledPipelineProgram, GoesBackToACheckpointWhenBothWorkersAreKilled) {
  const tools::Outcome killed = Train(
      Command(
          "killed", {"--restarts=3"},
          {"--checkpoint_dir=" + folder_ / "checkpoints", "--save_every=2"}),
      {{"epoch 3/3  step 1/", {"worker1", "worker2"}}});
  ASSERT_EQ(killed.code, 0) << killed.output;
  EXPECT_THAT(killed.output, HasSubstr("gone back to the checkpoint of step "));
  EXPECT_EQ(Losses("killed"), Undisturbed()) << killed.output;
}

TEST_F(KilledPipelineProgram, SaysHowToHaveACheckpointToGoBackTo) {
  const tools::Outcome killed =
      Train(Command("killed", {"--restarts=3"}, {}),
            {{"epoch 1/3  step 1/", {"worker1", "worker2"}}});
  EXPECT_NE(killed.code, 0) << killed.output;
  EXPECT_THAT(killed.output,
              HasSubstr("there is no checkpoint: start the training again; "
                        "--checkpoint_dir"));
}

}  // namespace
}  // namespace baton::examples
