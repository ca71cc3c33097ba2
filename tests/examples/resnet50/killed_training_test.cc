// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checkpoint.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

constexpr int kSteps = 40;
constexpr int kLeastKills = 8;

class KilledTraining : public ::testing::Test {
 protected:
  static std::vector<std::string> Command(
      const std::string& folder, const std::vector<std::string>& cuts) {
    std::vector<std::string> command = {testing::ProgramPath("killed_trainer"),
                                        folder, absl::StrCat(kSteps)};
    command.insert(command.end(), cuts.begin(), cuts.end());
    return command;
  }
  // What a line says of the loss of a step is said by all that have it.
  void Note(const std::string& line) {
    const size_t blank = line.find(' ');
    const std::string loss = line.substr(blank + 1);
    const auto [found, is_new] = losses_.emplace(line.substr(0, blank), loss);
    EXPECT_EQ(found->second, loss) << "step " << line;
  }

  const testing::TempFolder folder_;
  std::map<std::string, std::string> losses_;
};

// Killed at random moments of training and of saving, and resumed in two stages
// and in three by turns.
TEST_F(KilledTraining, HasTheLossesOfTheUndisturbedOne) {
  const std::vector<std::string> cuts[] = {{"layer2"}, {"layer1", "layer3"}};
  {
    ChildProcess whole(Command(folder_ / "whole", cuts[0]));
    for (std::string line = whole.ReadLine(); !line.empty();
         line = whole.ReadLine())
      Note(line);
    ASSERT_EQ(whole.Wait(), 0);
    ASSERT_EQ(losses_.size(), static_cast<size_t>(kSteps));
  }
  std::mt19937 random(5);
  std::uniform_int_distribution<int> steps(1, 4), wait_us(0, 30'000);
  const std::string run = folder_ / "run";
  int kills = 0;
  for (bool over = false; !over; ++kills) {
    ChildProcess trainer(Command(run, cuts[kills % 2]));
    for (int left = steps(random); left > 0 && !over; --left) {
      const std::string line = trainer.ReadLine();
      over = line.empty();
      if (!over) Note(line);
    }
    if (over) {
      EXPECT_EQ(trainer.Wait(), 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us(random)));
    trainer.Kill(SIGKILL);
    for (std::string line = trainer.ReadLine(); !line.empty();
         line = trainer.ReadLine())
      Note(line);
    ASSERT_LT(kills, 10 * kSteps) << "it does not get on";
  }
  EXPECT_GE(kills, kLeastKills);
  EXPECT_EQ(CheckpointSteps(run).back(), kSteps);
}

}  // namespace
}  // namespace baton::examples
