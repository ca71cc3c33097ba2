// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/recorded_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/error_of.h"
#include "tests/support/toy_stages.h"

// What is refused before a GPU is asked; pipeline_processes_test.cc replays.
namespace baton::dist {
namespace {

using ::testing::HasSubstr;
using testing::NoisyStage;

std::string RefusalOf(NoisyStage& module, const StageSpec& spec) {
  return test::ErrorOf([&] {
    RecordedProgram(std::make_shared<StepPlan>(), {}, {{module, spec}},
                    StepGate(), nullptr);
  });
}

// Also where a worker is alone, which makes no windows.
TEST(RecordedProgram, IsNotOfWhatTheHostMustSee) {
  NoisyStage draws(4, 0.5, 1), plain(4, 0, 1);
  EXPECT_THAT(RefusalOf(draws, {}), HasSubstr("stage 0: it draws random"));
  EXPECT_THAT(RefusalOf(plain, {.recompute = true}),
              HasSubstr("computes its forwards again"));
  EXPECT_THAT(RefusalOf(plain, {.deferred_batch_norm = true}),
              HasSubstr("statistics are deferred"));
  EXPECT_THAT(RefusalOf(plain, {.graph = false}), HasSubstr("graph is off"));
}

}  // namespace
}  // namespace baton::dist
