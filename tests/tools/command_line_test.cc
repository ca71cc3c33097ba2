// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/command_line.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(absl::Duration, patience, absl::Seconds(1), "how long to wait");
ABSL_FLAG(int, batch_size, 7, "images in a batch");
ABSL_FLAG(bool, fast, false, "go fast");
ABSL_FLAG(double, share, 0.5, "a part of it");
ABSL_FLAG(std::string, word, "", "any text");

namespace baton::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Flags : public ::testing::Test {
 private:
  absl::FlagSaver saver_;
};

std::string ErrorOf(const std::vector<std::string>& args) {
  auto line = ReadFlags(args);
  return line.ok() ? "" : std::string(line.status().message());
}

TEST_F(Flags, AreReadInEverySpelling) {
  ASSERT_TRUE(ReadFlags({"--batch_size=8", "--fast"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_batch_size), 8);
  EXPECT_TRUE(absl::GetFlag(FLAGS_fast));
  ASSERT_TRUE(ReadFlags({"--batch-size", "9", "--nofast", "-word=a=b"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_batch_size), 9);
  EXPECT_FALSE(absl::GetFlag(FLAGS_fast));
  EXPECT_EQ(absl::GetFlag(FLAGS_word), "a=b");
}

TEST_F(Flags, EndAtTwoDashes) {
  auto line = ReadFlags({"a", "--fast", "--", "trainer", "--batch_size=1"});
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->positional, ElementsAre("a", "trainer", "--batch_size=1"));
  EXPECT_EQ(absl::GetFlag(FLAGS_batch_size), 7);
}

TEST_F(Flags, SayWhichOneIsWrong) {
  EXPECT_EQ(ErrorOf({"--batchsize=8"}),
            "unknown flag --batchsize (do you mean --batch_size?); see --help");
  EXPECT_EQ(ErrorOf({"--fats"}),
            "unknown flag --fats (do you mean --fast?); see --help");
  EXPECT_EQ(ErrorOf({"--nonsense"}), "unknown flag --nonsense; see --help");
  EXPECT_THAT(ErrorOf({"--batch_size=many"}),
              HasSubstr("--batch_size=many is not a valid value; give a "
                        "whole number"));
  EXPECT_EQ(ErrorOf({"--patience=2"}),
            "--patience=2 is not a valid value; give a time, as 500ms, 2s or "
            "1m");
  EXPECT_EQ(ErrorOf({"--batch_size"}), "--batch_size needs a value");
  EXPECT_THAT(ErrorOf({"--nobatch_size"}), HasSubstr("unknown flag"));
}

TEST_F(Flags, TimesAreWholeMillisecondsThatClocksCanBeAddedTo) {
  using std::chrono::milliseconds;
  const auto time = [](absl::Duration value, milliseconds least) {
    absl::SetFlag(&FLAGS_patience, value);
    return TimeOf(FLAGS_patience, least);
  };
  EXPECT_EQ(*time(absl::Milliseconds(1), milliseconds(1)), milliseconds(1));
  EXPECT_EQ(*time(absl::Minutes(2), milliseconds(1)), milliseconds(120'000));
  EXPECT_EQ(*time(absl::ZeroDuration(), milliseconds(0)), milliseconds(0));
  const auto endless = time(absl::InfiniteDuration(), milliseconds(1));
  ASSERT_TRUE(endless.ok()) << endless.status();
  EXPECT_GT(*endless, std::chrono::hours(24) * 365);
  const auto now = std::chrono::system_clock::now();
  EXPECT_GT(now + *endless, now);
  for (const auto value : {absl::ZeroDuration(), absl::Microseconds(999),
                           -absl::InfiniteDuration()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(time(value, milliseconds(1)).status()))
        << value;
  }
  EXPECT_EQ(time(absl::Microseconds(500), milliseconds(1)).status().message(),
            "--patience=500us is too short: give 1ms or more");
}

TEST_F(Flags, AreAtLeastWhatTheyMustBe) {
  absl::SetFlag(&FLAGS_share, 0.25);
  EXPECT_TRUE(AtLeast(0.25, FLAGS_batch_size, FLAGS_share).ok());
  EXPECT_EQ(AtLeast(7, FLAGS_batch_size, FLAGS_share).message(),
            "--share=0.25 is too small: give 7 or more");
  absl::SetFlag(&FLAGS_batch_size, -3);
  EXPECT_EQ(AtLeast(0, FLAGS_batch_size, FLAGS_share).message(),
            "--batch_size=-3 is too small: give 0 or more");
  absl::SetFlag(&FLAGS_share, std::nan(""));
  EXPECT_TRUE(absl::IsInvalidArgument(AtLeast(0, FLAGS_share)));
}

TEST(Words, ThatNobodyTakesAreNamedWithTheNearest) {
  const std::vector<std::string> words = {"status", "rrefs", "trace"};
  EXPECT_TRUE(CheckWord("--show", "rrefs", words).ok());
  EXPECT_EQ(CheckWord("--show", "stauts", words).message(),
            "--show takes status, rrefs or trace, not 'stauts' (do you mean "
            "status?)");
  EXPECT_EQ(CheckWord("--show", "", words).message(),
            "--show takes status, rrefs or trace, not ''");
  EXPECT_EQ(CheckWord("--rate", "cosine", {"constant"}).message(),
            "--rate takes constant, not 'cosine'");
}

TEST(Words, AreMeantWhereTheyAreNear) {
  EXPECT_EQ(DoYouMean("bps", {"async", "bsp"}), " (do you mean bsp?)");
  EXPECT_EQ(DoYouMean("fp8", {"fp32", "fp16"}), "");
  EXPECT_EQ(DoYouMean("x", {"y", "xy"}), "");
  EXPECT_EQ(DoYouMean("adm", {"adamw", "adam"}), " (do you mean adam?)");
}

TEST(Words, ThatAreEquallyNearAreMeantInAnyOrder) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--log", "--plugin"}, {"--plugin", "--log"}})
    EXPECT_EQ(DoYouMean("--plug", flags), " (do you mean --plugin?)");
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"tin", "tan"}, {"tan", "tin"}})
    EXPECT_EQ(DoYouMean("ton", flags), " (do you mean tan?)");
}

TEST_F(Flags, AreListedByHelp) {
  EXPECT_TRUE(ReadFlags({"-h"})->help);
  const std::string text = HelpText("usage: x");
  EXPECT_THAT(text, HasSubstr("usage: x\n"));
  EXPECT_THAT(text, HasSubstr("--batch_size  images in a batch [7]"));
}

TEST_F(Flags, AWrongOneEndsTheProgramWithCode2) {
  char program[] = "program";
  char flag[] = "--nonsense";
  char* argv[] = {program, flag, nullptr};
  EXPECT_EXIT(ParseFlagsOrExit(2, argv, "usage"), ::testing::ExitedWithCode(2),
              "unknown flag --nonsense");
}

TEST(ExitCode, IsAFailureWhereOutputIsLost) {
  const auto print_and_end = [](const char* device) {
    if (std::freopen(device, "w", stdout) == nullptr) std::exit(99);
    std::printf("step 1: loss 0.5\n");
    std::exit(ExitCode(absl::OkStatus()));
  };
  EXPECT_EXIT(print_and_end("/dev/null"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(print_and_end("/dev/full"), ::testing::ExitedWithCode(1),
              "cannot write to standard output: No space left on device");
}

}  // namespace
}  // namespace baton::tools
