// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr LogLevel kLevels[] = {LogLevel::kDebug, LogLevel::kInfo,
                                LogLevel::kWarning, LogLevel::kError};

// What the environment says is read once, and lines go to standard error, so
// each of these has a process.
class LogDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static void Set(const char* value) { setenv("BATON_LOG", value, 1); }
  // Exits with how many levels are enabled, if those are the most urgent.
  [[noreturn]] static void ExitByLevels() {
    int enabled = 0;
    for (const LogLevel level : kLevels) {
      if (LogEnabled(level)) ++enabled;
      if (enabled > 0 && !LogEnabled(level)) std::_Exit(9);
    }
    std::_Exit(enabled);
  }
  static auto Levels(int enabled) { return testing::ExitedWithCode(enabled); }
};
const auto kDone = testing::ExitedWithCode(0);

TEST_F(LogDeathTest, TheEnvironmentNamesTheLeastLevel) {
  EXPECT_EXIT((Set("debug"), ExitByLevels()), Levels(4), IsEmpty());
  EXPECT_EXIT((Set("info"), ExitByLevels()), Levels(3), IsEmpty());
  EXPECT_EXIT((Set("warning"), ExitByLevels()), Levels(2), IsEmpty());
  EXPECT_EXIT((Set("error"), ExitByLevels()), Levels(1), IsEmpty());
}

TEST_F(LogDeathTest, WarningsAndErrorsAreShownUnlessToldOtherwise) {
  EXPECT_EXIT((unsetenv("BATON_LOG"), ExitByLevels()), Levels(2), IsEmpty());
  EXPECT_EXIT((Set(""), ExitByLevels()), Levels(2), IsEmpty());
}

TEST_F(LogDeathTest, ALevelThatIsNoneIsSaidAndIsWarning) {
  for (const char* value : {"loud", "DEBUG", "debug ", "0"}) {
    EXPECT_EXIT((Set(value), ExitByLevels()), Levels(2),
                AllOf(HasSubstr(absl::StrCat("BATON_LOG=", value, " ")),
                      ContainsRegex("debug, info, warning (or|and) error")));
  }
}

TEST_F(LogDeathTest, ALevelThatIsNoneIsSaidOnceAndFirst) {
  EXPECT_EXIT(
      {
        Set("loud");
        for (int i = 0; i < 3; ++i) LogWarning("line ", i);
        SetLogLevel(LogLevel::kInfo);
        LogInfo("line 3");
        std::_Exit(0);
      },
      kDone,
      MatchesRegex("[^\n]*BATON_LOG=loud[^\n]*\n"
                   "[^\n]*line 0\n[^\n]*line 1\n[^\n]*line 2\n"
                   "[^\n]*line 3\n"));
}

TEST_F(LogDeathTest, WhatIsSetCountsMoreThanTheEnvironment) {
  EXPECT_EXIT((Set("debug"), SetLogLevel(LogLevel::kError), ExitByLevels()),
              Levels(1), IsEmpty());
}

TEST_F(LogDeathTest, LinesBelowTheLevelAreDropped) {
  EXPECT_EXIT(
      {
        SetLogLevel(LogLevel::kInfo);
        LogDebug("line of debug");
        LogInfo("line of info");
        SetLogLevel(LogLevel::kError);
        LogWarning("line of warning");
        LogError("line of error");
        std::_Exit(0);
      },
      kDone, MatchesRegex("I [^\n]*line of info\nE [^\n]*line of error\n"));
}

TEST_F(LogDeathTest, ALineHasItsLevelTimeNameAndText) {
  const std::string at = " [0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9][0-9][0-9] ";
  EXPECT_EXIT(
      {
        SetLogLevel(LogLevel::kDebug);
        LogDebug("no name yet");
        SetLogName("alice");
        LogInfo("of ", 2, " parts");
        SetLogName("bob");
        LogWarning("renamed");
        LogError("");
        std::_Exit(0);
      },
      kDone,
      MatchesRegex(absl::StrCat("D", at, "no name yet\n",           //
                                "I", at, "\\[alice] of 2 parts\n",  //
                                "W", at, "\\[bob] renamed\n",       //
                                "E", at, "\\[bob] \n")));
}

// So many lines, each of which ends as it begins.
MATCHER_P(HasWholeLines, count, "") {
  const std::string all = arg;
  std::vector<std::string> lines = absl::StrSplit(all, '\n');
  if (lines.empty() || !lines.back().empty()) return false;
  lines.pop_back();
  return lines.size() == count &&
         std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
           return testing::Matches(
               MatchesRegex("W [0-9:.]* \\[w] (a+|b+|c+|d+)!"))(line);
         });
}

TEST_F(LogDeathTest, LinesOfManyThreadsStayWhole) {
  EXPECT_EXIT(
      {
        Set("warning");
        SetLogName("w");
        std::vector<std::thread> threads;
        for (const char letter : {'a', 'b', 'c', 'd'}) {
          threads.emplace_back([letter] {
            for (int i = 0; i < 100; ++i)
              LogWarning(std::string(200, letter), "!");
          });
        }
        for (std::thread& thread : threads) thread.join();
        std::_Exit(0);
      },
      kDone, HasWholeLines(400u));
}

TEST_F(LogDeathTest, WhatIsBelowTheLevelIsNotPutTogether) {
  // A part that would end the process if it were read.
  struct Part {
    operator absl::AlphaNum() const { std::abort(); }  // NOLINT
  };
  EXPECT_EXIT(
      {
        SetLogLevel(LogLevel::kError);
        LogWarning(Part());
        std::_Exit(0);
      },
      kDone, IsEmpty());
}

TEST(LogLevel, NamesAreThoseOfTheEnvironment) {
  EXPECT_EQ(LogLevelFromName("debug"), LogLevel::kDebug);
  EXPECT_EQ(LogLevelFromName("info"), LogLevel::kInfo);
  EXPECT_EQ(LogLevelFromName("warning"), LogLevel::kWarning);
  EXPECT_EQ(LogLevelFromName("error"), LogLevel::kError);
  for (const char* name : {"", "loud", "Debug", "warn", "info "})
    EXPECT_FALSE(LogLevelFromName(name).has_value()) << name;
}

}  // namespace
}  // namespace baton
