// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/step_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/tensor.h"

namespace baton::dist {
namespace {

using ::testing::HasSubstr;

TEST(StepState, FailureEndsWaitsAndAnswers) {
  StepState state;
  EXPECT_TRUE(state.ended().ok());
  Future<Tensor> answer = state.PutInput(0, Tensor::Ones({1}));
  EXPECT_FALSE(state.PutInput(0, Tensor::Ones({1})).Await().ok());
  state.Fail(absl::CancelledError("first"));
  state.Fail(absl::InternalError("second"));
  EXPECT_TRUE(absl::IsCancelled(state.ended()));
  EXPECT_TRUE(absl::IsCancelled(answer.Await().status()));
  auto later = StepState::Deadline::clock::now() + std::chrono::seconds(5);
  EXPECT_TRUE(absl::IsCancelled(state.TakeInput(0, later).status()));
  EXPECT_TRUE(absl::IsCancelled(state.PutInput(1, Tensor()).Await().status()));
  state.PutGradient(0, Tensor::Ones({1}));
  EXPECT_TRUE(absl::IsCancelled(state.TakeGradient(0, later).status()));
}

TEST(StepState, WaitsHaveADeadlineThatSaysWhatIsMissing) {
  StepState state;
  auto now = StepState::Deadline::clock::now();
  absl::Status status = state.TakeGradient(3, now).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gradient of micro-batch 3"));
}

}  // namespace
}  // namespace baton::dist
