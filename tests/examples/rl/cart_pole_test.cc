// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/cart_pole.h"

#include <gtest/gtest.h>

#include <cmath>

namespace baton::examples {
namespace {

// The two equations of motion, solved by Cramer's rule: of the whole,
//   (M + m) x'' + m l cos(a) a'' = F + m l a'^2 sin(a)
// and of the pole around its joint, 4/3 l a'' + cos(a) x'' = g sin(a).
void ExpectPushed(const CartPole::State& at, int32_t action) {
  const double all = 1.1, moment = 0.1 * 0.5, force = action == 1 ? 10 : -10;
  const double sine = std::sin(at[2]), cosine = std::cos(at[2]);
  const double right = force + moment * at[3] * at[3] * sine;
  const double determinant = all * 0.5 * 4 / 3 - moment * cosine * cosine;
  const double driven =
      (right * 0.5 * 4 / 3 - moment * cosine * 9.8 * sine) / determinant;
  const double turned = (all * 9.8 * sine - cosine * right) / determinant;
  CartPole world(at);
  world.Push(action);
  const CartPole::State after = world.state();
  EXPECT_NEAR(after[0], at[0] + 0.02 * at[1], 1e-5);
  EXPECT_NEAR(after[1], at[1] + 0.02 * driven, 1e-5);
  EXPECT_NEAR(after[2], at[2] + 0.02 * at[3], 1e-5);
  EXPECT_NEAR(after[3], at[3] + 0.02 * turned, 1e-5);
}

TEST(CartPole, FollowsTheEquationsOfMotion) {
  for (const int32_t action : {0, 1}) {
    ExpectPushed({0, 0, 0, 0}, action);
    ExpectPushed({0.5, -1, 0.1, 0.7}, action);
    ExpectPushed({-1, 2, -0.2, -3}, action);
  }
}

TEST(CartPole, IsOverWherePoleOrCartIsTooFarOff) {
  EXPECT_FALSE(CartPole({0, 0, 0.209F, 0}).over());
  EXPECT_TRUE(CartPole({0, 0, 0.21F, 0}).over());
  EXPECT_TRUE(CartPole({0, 0, -0.21F, 0}).over());
  EXPECT_FALSE(CartPole({2.39F, 0, 0, 0}).over());
  EXPECT_TRUE(CartPole({2.41F, 0, 0, 0}).over());
  EXPECT_TRUE(CartPole({-2.41F, 0, 0, 0}).over());
}

TEST(CartPole, IsOverAfter500Pushes) {
  CartPole world({0, 0, 0.01F, 0});
  // Against the way it leans and turns: that holds the pole up.
  while (!world.over()) {
    const CartPole::State at = world.state();
    world.Push(at[2] + 0.5F * at[3] + 0.02F * at[0] + 0.05F * at[1] > 0 ? 1
                                                                        : 0);
  }
  EXPECT_EQ(world.steps(), 500);
}

}  // namespace
}  // namespace baton::examples
