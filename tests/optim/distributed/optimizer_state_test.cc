// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/arithmetic.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
#include "tests/optim/distributed/two_layers.h"

namespace baton::dist {
namespace {

TEST_F(OptimizerTest, AScheduleGoesOnWhereTheStateWasSaved) {
  const optim::Schedule schedule =
      optim::WarmUp(3, optim::PolynomialLr({.total = 4}));
  const auto step = [&](Optimizer<optim::Sgd>& sgd) {
    Context ctx(agent());
    Backward(ctx);
    absl::Status status = sgd.Step(ctx);
    ASSERT_TRUE(status.ok()) << status;
  };
  Optimizer<optim::Sgd> first(agent(), {.lr = 0.03}, Sources());
  first.set_schedule(schedule);
  EXPECT_DOUBLE_EQ(first.lr(), 0.01);
  for (int i = 0; i < 4; ++i) step(first);
  EXPECT_DOUBLE_EQ(first.lr(), 0.0225);
  auto state = first.State();
  ASSERT_TRUE(state.ok()) << state.status();
  Optimizer<optim::Sgd> second(agent(), {.lr = 1}, Sources());
  second.set_schedule(schedule);
  ASSERT_TRUE(second.LoadState(*state).ok());
  EXPECT_DOUBLE_EQ(second.lr(), 0.0225);
  step(second);
  EXPECT_DOUBLE_EQ(second.lr(), 0.015);
}

TEST_F(OptimizerTest, ANamedStateFitsOtherPlacesAndAnotherOrder) {
  const ParameterSource front(remote_[0].ref()), back(remote_[1].ref());
  Optimizer<optim::Adam> first(agent(), {.lr = 0.01},
                               {front.Named("front"), back.Named("back")});
  Context ctx(agent());
  Backward(ctx);
  ASSERT_TRUE(first.Step(ctx).ok());
  auto state = first.State();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(state->contains("back.linear.weight.exp_avg"));
  Optimizer<optim::Adam> second(agent(), {.lr = 0.01},
                                {back.Named("back"), front.Named("front")});
  absl::Status loaded = second.LoadState(*state);
  ASSERT_TRUE(loaded.ok()) << loaded;
  auto again = second.State();
  ASSERT_TRUE(again.ok()) << again.status();
  for (const auto& [key, tensor] : *state)
    EXPECT_TRUE(ops::BitEqual(again->at(key), tensor)) << key;
  // Two objects cannot share all their names.
  Optimizer<optim::Adam> unclear(agent(), {},
                                 {front.Named(""), back.Named("")});
  ASSERT_TRUE(unclear.Step(ctx).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(unclear.State().status()));
}

TEST_F(OptimizerTest, ARestoredStateContinuesBitForBit) {
  const optim::AdamOptions options{.lr = 0.01};
  Optimizer<optim::Adam> first(agent(), options, Sources());
  optim::Adam local(LocalParameters(), options);
  auto step = [&](Optimizer<optim::Adam>& remote) {
    Context ctx(agent());
    Backward(ctx);
    ASSERT_TRUE(remote.Step(ctx).ok());
    local.ZeroGrad();
    BackwardLocally();
    local.Step();
  };
  step(first);
  step(first);
  auto state = first.State();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(state->contains("1.linear.weight.exp_avg"));
  Optimizer<optim::Adam> second(agent(), options, Sources());
  absl::Status loaded = second.LoadState(*state);
  ASSERT_TRUE(loaded.ok()) << loaded;
  step(second);
  ExpectEqualParameters();
}

TEST_F(OptimizerTest, AStateThatFitsNothingIsRefused) {
  Optimizer<optim::Adam> adam(agent(), {}, Sources());
  for (const char* key : {"2.0.exp_avg", "0.9.exp_avg", "x", ""}) {
    absl::Status status = adam.LoadState({{key, Tensor::Ones({1})}});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << key << ": " << status;
  }
}

}  // namespace
}  // namespace baton::dist
