// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Those that train in one process.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_files.h"
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
        "--device=gpu", "--overlap_trace=/tmp/t.json", "--require_path=window",
        "--variants=local", "--recover"}) {
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

TEST(MixedDevice, WritesAnEventFileForTensorBoard) {
  const testing::TempFolder folder;
  const Outcome outcome = RunProgram(
      {"mixed_device", "--steps=3", "--tensorboard=" + folder.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const std::filesystem::directory_iterator files(folder / "mixed_device");
  ASSERT_NE(files, std::filesystem::directory_iterator());
  EXPECT_THAT(files->path().filename().string(), HasSubstr("tfevents"));
}

TEST(MixedDevice, TrainsAndPrintsItsLoss) {
  const Outcome outcome = RunProgram({"mixed_device", "--steps=3"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("step   3: loss"));
}

TEST(TransformerLm, LearnsAText) {
  const baton::testing::TempFolder folder;
  std::string words;
  for (int i = 0; i < 60; ++i) words += "the cat sat on the mat and saw it. ";
  const std::string text = folder.Write("text.txt", words);
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"transformer_lm", "--text=" + text, "--context=16",
                  "--width=32", "--layers=1", "--batch=8", "--lr=0.003"});
    return RunProgram(flags);
  };
  const Outcome outcome = run({"--steps=300"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const std::string line = "validation loss ";
  const size_t at = outcome.output.find(line);
  ASSERT_NE(at, std::string::npos) << outcome.output;
  // What a model of this text that sees one byte alone has at best.
  EXPECT_LT(std::stod(outcome.output.substr(at + line.size())), 0.834)
      << outcome.output;
  EXPECT_EQ(run({"--dtype=i64"}).code, 2);
  EXPECT_EQ(run({"--heads=5"}).code, 2);
  EXPECT_THAT(run({"--context=1000"}).output, HasSubstr("too short"));
  EXPECT_EQ(RunProgram({"transformer_lm"}).code, 2);
  EXPECT_EQ(run({"--device=cuda:63"}).code, 1);
}

}  // namespace
}  // namespace baton::tools
