// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "core/status.h"

// tests/optim/golden_test.cc compares with PyTorch.
namespace baton::optim {
namespace {

TEST(Schedule, OfACosineStaysAtItsFloor) {
  const Schedule cosine = CosineLr({.total = 10, .floor = 0.2});
  EXPECT_DOUBLE_EQ(cosine(1, 0), 1);
  EXPECT_DOUBLE_EQ(cosine(1, 5), 0.6);
  EXPECT_DOUBLE_EQ(cosine(1, 10), 0.2);
  EXPECT_DOUBLE_EQ(cosine(1, 99), 0.2);
}

TEST(Schedule, OfOneCycleStaysAtItsEnd) {
  const Schedule cycle =
      OneCycleLr({.total = 10, .div_factor = 10, .final_div_factor = 100});
  EXPECT_DOUBLE_EQ(cycle(1, 0), 0.1);
  EXPECT_DOUBLE_EQ(cycle(1, 2), 1);
  EXPECT_DOUBLE_EQ(cycle(1, 9), 0.001);
  EXPECT_DOUBLE_EQ(cycle(1, 99), 0.001);
}

TEST(Schedule, WarmsUpToWhatFollows) {
  const Schedule schedule = WarmUp(4, CosineLr({.total = 4}));
  EXPECT_DOUBLE_EQ(schedule(1, 0), 0.25);
  EXPECT_DOUBLE_EQ(schedule(1, 3), 1);
  EXPECT_DOUBLE_EQ(schedule(1, 4), 1);
  EXPECT_DOUBLE_EQ(schedule(1, 6), 0.5);
}

TEST(Schedule, HasAName) {
  EXPECT_EQ(ScheduleNamed("constant", 5).value(), nullptr);
  const Schedule warm = ScheduleNamed("warm-cosine", 20).value();
  EXPECT_DOUBLE_EQ(warm(1, 0), 0.5);
  EXPECT_DOUBLE_EQ(warm(1, 2), 1);
  EXPECT_DOUBLE_EQ(warm(1, 11), 0.5);
  EXPECT_DOUBLE_EQ(warm(1, 20), 0);
  const Schedule straight = ScheduleNamed("warm-linear", 20).value();
  EXPECT_DOUBLE_EQ(straight(1, 11), 0.5);
  EXPECT_DOUBLE_EQ(ScheduleNamed("linear", 4).value()(1, 1), 0.75);
  EXPECT_DOUBLE_EQ(ScheduleNamed("one-cycle", 10).value()(1, 2), 1);
  const absl::Status unknown = ScheduleNamed("cycle", 5).status();
  EXPECT_EQ(unknown.message(),
            "there is no schedule 'cycle'; there are constant, cosine, linear, "
            "one-cycle, warm-cosine, warm-linear");
}

TEST(Schedule, RefusesOptionsOutOfRange) {
  EXPECT_THROW(StepLr({.every = 0}), Error);
  EXPECT_THROW(LinearLr({.total = 0}), Error);
  EXPECT_THROW(PolynomialLr({.total = -1}), Error);
  EXPECT_THROW(CosineLr({}), Error);
  EXPECT_THROW(OneCycleLr({.total = 5, .rise = 1.5}), Error);
  EXPECT_THROW(SequentialLr({StepLr({})}, {3}), Error);
  EXPECT_THROW(SequentialLr({StepLr({}), StepLr({}), StepLr({})}, {3, 2}),
               Error);
  EXPECT_THROW(WarmUp(0, StepLr({})), Error);
}

}  // namespace
}  // namespace baton::optim
