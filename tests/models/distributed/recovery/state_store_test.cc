// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::Fails;
using testing::IsOk;

NamedTensors Just(float value) { return {{"x", Tensor::Full({1}, value)}}; }

TEST(StateStore, KeepsTheStatesAfterTheLastTwoStepsOfEachPlace) {
  StateStore store;
  for (int64_t step : {0, 1, 2})
    ASSERT_THAT(store.Put(1, {0, step}, Just(static_cast<float>(step))),
                IsOk());
  ASSERT_THAT(store.Put(1, {1, 0}, Just(7)), IsOk());
  EXPECT_THAT(store.Fence(1),
              ElementsAre(KeptState{0, 1}, KeptState{0, 2}, KeptState{1, 0}));
  EXPECT_EQ(store.Get({0, 2})->at("x").Item(), 2);
  EXPECT_THAT(store.Get({0, 0}), Fails(StatusCode::kNotFound, "step 0"));
}

TEST(StateStore, AStepThatIsDoneAgainLeavesNoneThatCameAfterIt) {
  StateStore store;
  for (int64_t step : {4, 5}) ASSERT_THAT(store.Put(1, {0, step}, {}), IsOk());
  ASSERT_THAT(store.Put(2, {0, 4}, Just(4)), IsOk());
  EXPECT_THAT(store.Fence(2), ElementsAre(KeptState{0, 4}));
}

TEST(StateStore, RefusesWhatAnEarlierEpochPuts) {
  StateStore store;
  ASSERT_THAT(store.Put(1, {0, 4}, {}), IsOk());
  store.Fence(2);
  EXPECT_THAT(store.Put(1, {0, 5}, {}),
              Fails(StatusCode::kAborted, "made anew"));
  EXPECT_THAT(store.Fence(1), ElementsAre(KeptState{0, 4}));
}

}  // namespace
}  // namespace baton::dist
