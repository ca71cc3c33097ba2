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
#include "tests/support/kills.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

constexpr int kSteps = 40;

class KilledTraining : public ::testing::Test {
 protected:
  // Of two stages and of three, by turns: another cut, other workers.
  ChildProcess Resume(const std::string& folder) {
    const std::vector<std::string> cuts[] = {{"layer2"}, {"layer1", "layer3"}};
    std::vector<std::string> command = {testing::ProgramPath("killed_trainer"),
                                        folder, absl::StrCat(kSteps)};
    const std::vector<std::string>& cut = cuts[begun_++ % 2];
    command.insert(command.end(), cut.begin(), cut.end());
    return ChildProcess(command);
  }
  // Reads what the trainer says of at most so many steps; true if it says no
  // more. What a line says of the loss of a step is said by all that have it.
  bool Note(ChildProcess& trainer, int steps) {
    for (; steps > 0; --steps) {
      const std::string line = trainer.ReadLine();
      if (line.empty()) return true;
      const size_t blank = line.find(' ');
      const std::string loss = line.substr(blank + 1);
      const auto [found, is_new] = losses_.emplace(line.substr(0, blank), loss);
      EXPECT_EQ(found->second, loss) << "step " << line;
    }
    return false;
  }
  void ExpectEnd(ChildProcess& trainer, const std::string& folder) {
    EXPECT_TRUE(Note(trainer, kSteps + 1));
    EXPECT_EQ(trainer.Wait(), 0);
    EXPECT_EQ(losses_.size(), static_cast<size_t>(kSteps));
    EXPECT_EQ(CheckpointSteps(folder).back(), kSteps);
  }

  const testing::TempFolder folder_;
  std::map<std::string, std::string> losses_;
  int begun_ = 0;
};

// Killed at random moments of training and of saving, and resumed. One that was
// faster than its killer is followed by one in another folder.
TEST_F(KilledTraining, HasTheLossesOfTheUndisturbedOne) {
  {
    const std::string whole = folder_ / "whole";
    ChildProcess trainer = Resume(whole);
    ExpectEnd(trainer, whole);
  }
  std::mt19937 random(5);
  std::uniform_int_distribution<int> steps(0, 4), wait_us(0, 30'000);
  const int kills = testing::Kills(8);
  int trainings = 0;
  std::string run = folder_ / "run_0";
  for (int kill = 0; kill < kills;) {
    ChildProcess trainer = Resume(run);
    if (Note(trainer, steps(random))) {
      ExpectEnd(trainer, run);
      run = folder_ / absl::StrCat("run_", ++trainings);
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us(random)));
    trainer.Kill(SIGKILL);
    ++kill;
    EXPECT_TRUE(Note(trainer, kSteps + 1));
  }
  ChildProcess last = Resume(run);
  ExpectEnd(last, run);
}

}  // namespace
}  // namespace baton::examples
