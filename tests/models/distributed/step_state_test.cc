// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/step_state.h"

#include <gtest/gtest.h>

#include "core/tensor.h"

namespace baton::dist {
namespace {

TEST(StepState, TakesTargetsUntilTheStepIsOver) {
  StepState state(1);
  const Tensor targets = Tensor::Arange(2);
  EXPECT_TRUE(state.PutTargets(targets).ok());
  state.Fail(absl::AbortedError("the step is over"));
  EXPECT_EQ(state.PutTargets(targets), absl::AbortedError("the step is over"));
}

}  // namespace
}  // namespace baton::dist
