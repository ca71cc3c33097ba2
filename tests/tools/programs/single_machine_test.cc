// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Those that train in one process.

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(SingleMachine, AGpuThatIsNotThereIsOneLineThatNamesIt) {
  for (const char* program : {"resnet50_single_machine", "mixed_device"}) {
    const std::string flag =
        std::string(program) == "mixed_device" ? "--linear" : "--device";
    const Outcome outcome = RunProgram({program, flag + "=cuda:63"});
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    EXPECT_THAT(outcome.output, ContainsRegex("CUDA|cuda:63"));
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1)
        << outcome.output;
  }
}

TEST(SingleMachine, FlagsThatDoNotFitAreNamed) {
  for (const char* flag :
       {"--dtype=bf16", "--dtype=int8", "--graph=on", "--graph=maybe",
        "--device=gpu", "--overlap_trace=/tmp/t.json"}) {
    const Outcome outcome = RunProgram({"resnet50_single_machine", flag});
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_THAT(outcome.output, HasSubstr(std::string(flag).substr(
                                    0, std::string(flag).find('='))));
  }
}

TEST(SingleMachine, ABatchIsSplitAsFarAsItGoes) {
  const std::vector<std::string> tiny = {
      "resnet50_single_machine", "--depth=18",  "--width=8",  "--image=32",
      "--variants=pipelined",    "--batches=1", "--repeat=1", "--batch=4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tiny.begin(), tiny.end());
    return RunProgram(more);
  };
  EXPECT_THAT(with({}).output, HasSubstr("pipelined 4 "));
  EXPECT_THAT(with({"--split_sizes=4,2"}).output, HasSubstr("pipelined 2 "));
  EXPECT_THAT(with({"--split_size=5"}).output,
              HasSubstr("--split_size takes numbers from 1 to --batch (4)"));
}

TEST(MixedDevice, TrainsAndPrintsItsLoss) {
  const Outcome outcome = RunProgram({"mixed_device", "--steps=3"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("step   3: loss"));
}

}  // namespace
}  // namespace baton::tools
