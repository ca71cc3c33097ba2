// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/state_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::IsEmpty;
using testing::IsOk;

NamedTensors Just(float value) { return {{"x", Tensor::Full({1}, value)}}; }

TEST(StateStore, KeepsTheStatesAfterTheLastTwoStepsOfEachPlace) {
  StateStore store;
  for (int64_t step : {0, 1, 2})
    ASSERT_THAT(store.Put(1, {0, step}, Just(static_cast<float>(step))),
                IsOk());
  ASSERT_THAT(store.Put(1, {1, 0}, Just(7)), IsOk());
  EXPECT_THAT(*store.Fence(1),
              ElementsAre(KeptState{0, 1}, KeptState{0, 2}, KeptState{1, 0}));
  EXPECT_EQ(store.Get(1, {0, 2})->at("x").Item(), 2);
  EXPECT_THAT(store.Get(1, {0, 0}), Fails(StatusCode::kNotFound, "step 0"));
}

TEST(StateStore, AStepThatIsDoneAgainLeavesNoneThatCameAfterIt) {
  StateStore store;
  for (int64_t step : {4, 5}) ASSERT_THAT(store.Put(1, {0, step}, {}), IsOk());
  ASSERT_THAT(store.Put(2, {0, 4}, Just(4)), IsOk());
  EXPECT_THAT(*store.Fence(2), ElementsAre(KeptState{0, 4}));
}

TEST(StateStore, RefusesWhatAnEarlierEpochPuts) {
  StateStore store;
  ASSERT_THAT(store.Put(1, {0, 4}, {}), IsOk());
  EXPECT_THAT(store.Fence(2), IsOk());
  EXPECT_THAT(store.Put(1, {0, 5}, {}),
              Fails(StatusCode::kAborted, "made anew"));
  // Its memory is still the store's.
  EXPECT_THAT(store.Drop(1, {0, 4}), Fails(StatusCode::kAborted, "made anew"));
  EXPECT_THAT(*store.Fence(1), ElementsAre(KeptState{0, 4}));
  EXPECT_THAT(store.Drop(2, {0, 4}), IsOk());
  EXPECT_THAT(*store.Fence(2), IsEmpty());
}

rpc::WorkerInfo Trainer(uint64_t incarnation) {
  rpc::WorkerInfo trainer;
  trainer.name = absl::StrCat("trainer", incarnation);
  trainer.incarnation = incarnation;
  return trainer;
}

StateClaim ClaimOf(uint64_t trainer, bool takes_up = true) {
  return {.pipeline = "p",
          .epoch = trainer * kEpochsOfTrainer,
          .takes_up = takes_up,
          .grace_ms = 0};
}

TEST(StateStore, ATrainerThatTakesAPipelineUpFindsItsStates) {
  StateStore store;
  ASSERT_THAT(store.Claim(Trainer(1), ClaimOf(1)), IsOk());
  ASSERT_THAT(store.Put(kEpochsOfTrainer, {0, 4}, {}), IsOk());
  ASSERT_THAT(store.Claim(Trainer(2), ClaimOf(2)), IsOk());
  EXPECT_THAT(*store.Fence(2 * kEpochsOfTrainer), ElementsAre(KeptState{0, 4}));
  ASSERT_THAT(store.Claim(Trainer(2), ClaimOf(2, false)), IsOk());
  EXPECT_THAT(*store.Fence(2 * kEpochsOfTrainer), IsEmpty());
}

TEST(StateStore, RefusesWhateverATrainerAsksThatAnotherHasFollowed) {
  StateStore store;
  ASSERT_THAT(store.Claim(Trainer(1), ClaimOf(1)), IsOk());
  ASSERT_THAT(store.Put(kEpochsOfTrainer, {0, 3}, {}), IsOk());
  ASSERT_THAT(store.Claim(Trainer(2), ClaimOf(2)), IsOk());
  const auto refused =
      Fails(StatusCode::kPermissionDenied, "trainer2 (incarnation 2)");
  EXPECT_THAT(store.Check(kEpochsOfTrainer + 5), refused);
  EXPECT_THAT(store.Fence(kEpochsOfTrainer + 5), refused);
  EXPECT_THAT(store.Put(kEpochsOfTrainer + 5, {0, 4}, {}), refused);
  EXPECT_THAT(store.Get(kEpochsOfTrainer + 5, {0, 3}), refused);
  EXPECT_THAT(store.Drop(kEpochsOfTrainer + 5, {0, 3}), refused);
  EXPECT_THAT(store.Claim(Trainer(1), ClaimOf(1)), refused);
  EXPECT_THAT(store.Claim(Trainer(3), ClaimOf(2)), refused);
  EXPECT_THAT(store.Check(2 * kEpochsOfTrainer), IsOk());
  EXPECT_THAT(store.Get(2 * kEpochsOfTrainer, {0, 3}), IsOk());
}

}  // namespace
}  // namespace baton::dist
