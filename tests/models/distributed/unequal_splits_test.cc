// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/unequal_splits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/distributed/made_profiles.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Half of the rows in the first micro-batch, in the last one, or in both.
TEST(UnequalSplits, AreTriedWhereTheSimulatedStepIsShorter) {
  const PlanRequest request = {.rows = 16, .split_sizes = {4}};
  const ClusterProfile profile = EvenProfile(6, 2);
  const Plan plan = MakePlan(profile, request).value();
  const auto splits = UnequalSplits(profile, request, plan).value();
  ASSERT_FALSE(splits.empty());
  EXPECT_THAT(splits.front(), ElementsAre(2, 4, 4, 6));
  EXPECT_THAT(splits.back(), ElementsAre(2, 6, 6, 2));
  // Where every micro-batch has the same costs, only the first kind is tried.
  ClusterProfile constant = profile;
  for (Profile& worker : constant.workers) worker.costs[1] = worker.costs[0];
  const Plan same = MakePlan(constant, request).value();
  EXPECT_THAT(UnequalSplits(constant, request, same).value(),
              ElementsAre(ElementsAre(2, 4, 4, 6)));
}

TEST(UnequalSplits, KeepWithinTheMemoryAndTheRowsOfAModel) {
  PlanRequest request = {.rows = 16, .split_sizes = {4}};
  ClusterProfile profile = EvenProfile(6, 2);
  const Plan plan = MakePlan(profile, request).value();
  request.most_bytes = plan.bytes[0] / 2;
  EXPECT_THAT(UnequalSplits(profile, request, plan).value(), IsEmpty());
  request.most_bytes = 0;
  profile.workers[1].least_rows = 3;
  EXPECT_THAT(UnequalSplits(profile, request, plan).value(), IsEmpty());
  const PlanRequest whole = {.rows = 16, .split_sizes = {16}};
  const Plan one = MakePlan(profile, whole).value();
  EXPECT_THAT(UnequalSplits(profile, whole, one).value(), IsEmpty());
}

}  // namespace
}  // namespace baton::dist
