// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/checkpoint.h"
#include "tests/support/child_process.h"
#include "tests/support/kills.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"

namespace baton {
namespace {

constexpr int kKept = 2;

// Reads all of a checkpoint, whose numbers are its step.
void ExpectWhole(const std::string& folder, int64_t step) {
  const auto checkpoint = Checkpoint::Open(folder, step);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->Names().size(), 6u);
  const auto tensors = checkpoint->Read(checkpoint->Names());
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  for (const auto& [name, tensor] : *tensors) {
    const std::vector<float> numbers = tensor.ToVector<float>();
    EXPECT_TRUE(std::all_of(
        numbers.begin(), numbers.end(),
        [&](float number) { return number == static_cast<float>(step); }))
        << name << " of step " << step;
  }
}

// A process is killed at random moments of saving, and the next one goes on in
// the same folder. Whatever is found is whole, and nothing is lost that was
// said to be on the disk.
TEST(CheckpointKill, WhatIsFoundIsAlwaysWhole) {
  const testing::TempFolder folder;
  const std::string run = folder / "run";
  std::mt19937 random(17);
  std::uniform_int_distribution<int> wait_us(0, 40'000);
  const int kills = testing::Kills(40);
  int64_t newest = 0;
  for (int kill = 0; kill < kills; ++kill) {
    ChildProcess saver({testing::ProgramPath("checkpoint_saver"), run,
                        std::to_string(newest + 1), std::to_string(kKept)});
    // One is on the disk, so that the kill falls into the saving of another.
    int64_t said = std::stoll(saver.ReadLine());
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us(random)));
    saver.Kill(SIGKILL);
    for (std::string line = saver.ReadLine(); !line.empty();
         line = saver.ReadLine())
      said = std::stoll(line);
    EXPECT_EQ(saver.Wait(), SIGKILL);
    const std::vector<int64_t> steps = CheckpointSteps(run);
    ASSERT_FALSE(steps.empty());
    EXPECT_GE(steps.back(), said);
    EXPECT_LE(steps.back(), said + 1);
    EXPECT_LE(steps.size(), kKept + 1u);  // before the oldest is removed
    for (const int64_t step : steps) ExpectWhole(run, step);
    newest = steps.back();
  }
  EXPECT_GE(newest, kills);
}

}  // namespace
}  // namespace baton
