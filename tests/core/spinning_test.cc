// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/spinning.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace baton {
namespace {

using std::chrono::milliseconds;

// What the environment says is read once, so each of these has a process.
class SpinningDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static void Set(const char* value) { setenv("BATON_SPIN", value, 1); }
  static void HearSoon(Spinning& spinning, int times) {
    spinning.Restart();
    for (int i = 0; i < times; ++i) spinning.Came();
  }
  // Exits with 0 if it spins, having heard at once many times.
  [[noreturn]] static void ExitByWhatItDoes() {
    Spinning spinning;
    HearSoon(spinning, 8);
    std::_Exit(spinning.Wait() ? 0 : 1);
  }
};
const auto kLooksOn = ::testing::ExitedWithCode(0);
const auto kSleeps = ::testing::ExitedWithCode(1);

TEST_F(SpinningDeathTest, ByTheEnvironment) {
  EXPECT_EXIT((Set("1h"), ExitByWhatItDoes()), kLooksOn, "");
  EXPECT_EXIT((Set("off"), ExitByWhatItDoes()), kSleeps, "");
}

TEST_F(SpinningDeathTest, WhatMakesNoSenseIsSaid) {
  EXPECT_EXIT(
      {
        Set("long");
        Spinning().Came();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "BATON_SPIN=long means nothing");
}

TEST_F(SpinningDeathTest, NotBeforeItHasPaid) {
  EXPECT_EXIT((Set("1h"), std::_Exit(Spinning().Wait() ? 0 : 1)), kSleeps, "");
  EXPECT_EXIT(
      {
        Set("1h");
        Spinning spinning;
        HearSoon(spinning, 7);
        std::_Exit(spinning.Wait() ? 0 : 1);
      },
      kSleeps, "");
}

TEST_F(SpinningDeathTest, NoLongerThanItIsWorth) {
  EXPECT_EXIT(
      {
        Set("1ms");
        Spinning spinning;
        HearSoon(spinning, 100);
        std::this_thread::sleep_for(milliseconds(2));
        std::_Exit(spinning.Wait() ? 0 : 1);
      },
      kSleeps, "");
}

TEST_F(SpinningDeathTest, NotWhereAnswersTakeLonger) {
  EXPECT_EXIT(
      {
        Set("10ms");
        Spinning spinning;
        HearSoon(spinning, 8);
        std::this_thread::sleep_for(milliseconds(11));
        spinning.Came();
        std::_Exit(spinning.Wait() ? 0 : 1);
      },
      kSleeps, "");
}

// A few answers at once and then nothing for long, as a trainer hears from its
// workers in each step, are not worth it.
TEST_F(SpinningDeathTest, NotWhereFewComeSoonForEachThatComesLate) {
  EXPECT_EXIT(
      {
        Set("10ms");
        Spinning spinning;
        HearSoon(spinning, 100);
        for (int step = 0; step < 3; ++step) {
          std::this_thread::sleep_for(milliseconds(11));
          for (int i = 0; i < 5; ++i) spinning.Came();
        }
        std::_Exit(spinning.Wait() ? 0 : 1);
      },
      kSleeps, "");
}

}  // namespace
}  // namespace baton
