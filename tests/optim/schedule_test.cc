// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "core/status.h"

namespace baton::optim {
namespace {

TEST(StepLr, FallsByItsFactorEverySoManySteps) {
  const StepLrOptions options = {.base = 1, .every = 3, .factor = 0.5};
  EXPECT_DOUBLE_EQ(StepLr(options, 0), 1);
  EXPECT_DOUBLE_EQ(StepLr(options, 2), 1);
  EXPECT_DOUBLE_EQ(StepLr(options, 3), 0.5);
  EXPECT_DOUBLE_EQ(StepLr(options, 8), 0.25);
}

TEST(CosineLr, FallsFromBaseToFloorAndStays) {
  const CosineLrOptions options = {.base = 1, .floor = 0.2, .total = 10};
  EXPECT_DOUBLE_EQ(CosineLr(options, 0), 1);
  EXPECT_DOUBLE_EQ(CosineLr(options, 5), 0.6);
  EXPECT_DOUBLE_EQ(CosineLr(options, 10), 0.2);
  EXPECT_DOUBLE_EQ(CosineLr(options, 99), 0.2);
}

TEST(CosineLr, WarmsUpLinearly) {
  const CosineLrOptions options = {.base = 1, .warmup = 4, .total = 8};
  EXPECT_DOUBLE_EQ(CosineLr(options, 0), 0.25);
  EXPECT_DOUBLE_EQ(CosineLr(options, 3), 1);
  EXPECT_DOUBLE_EQ(CosineLr(options, 4), 1);
  EXPECT_DOUBLE_EQ(CosineLr(options, 6), 0.5);
}

TEST(Schedules, RefuseOptionsOutOfRange) {
  EXPECT_THROW(StepLr({.every = 0}, 1), Error);
  EXPECT_THROW(StepLr({}, -1), Error);
  EXPECT_THROW(CosineLr({.total = 0}, 1), Error);
  EXPECT_THROW(CosineLr({.warmup = 5, .total = 5}, 1), Error);
}

}  // namespace
}  // namespace baton::optim
