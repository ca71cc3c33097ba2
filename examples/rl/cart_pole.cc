// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/cart_pole.h"

#include <cmath>
#include <numbers>

namespace baton::examples {
namespace {

constexpr double kGravity = 9.8;
constexpr double kCartMass = 1.0, kPoleMass = 0.1;
constexpr double kHalfLength = 0.5;
constexpr double kForce = 10.0;
constexpr double kTick = 0.02;  // seconds
constexpr double kFarthest = 2.4;
constexpr double kSteepest = 12 * std::numbers::pi / 180;

}  // namespace

CartPole::CartPole(const State& start)
    : place_(start[0]),
      speed_(start[1]),
      angle_(start[2]),
      turning_(start[3]) {}

CartPole::State CartPole::state() const {
  return {static_cast<float>(place_), static_cast<float>(speed_),
          static_cast<float>(angle_), static_cast<float>(turning_)};
}

bool CartPole::over() const {
  return steps_ >= kMostSteps || std::abs(place_) > kFarthest ||
         std::abs(angle_) > kSteepest;
}

// Integrates the equations of motion of Barto, Sutton and Anderson (1983),
// without friction, by Euler's method: positions before speeds.
void CartPole::Push(int32_t action) {
  constexpr double kMass = kCartMass + kPoleMass;
  const double force = action == 1 ? kForce : -kForce;
  const double sine = std::sin(angle_), cosine = std::cos(angle_);
  const double pushed =
      (force + kPoleMass * kHalfLength * turning_ * turning_ * sine) / kMass;
  const double turned =
      (kGravity * sine - cosine * pushed) /
      (kHalfLength * (4.0 / 3.0 - kPoleMass * cosine * cosine / kMass));
  const double driven =
      pushed - kPoleMass * kHalfLength * turned * cosine / kMass;
  place_ += kTick * speed_;
  speed_ += kTick * driven;
  angle_ += kTick * turning_;
  turning_ += kTick * turned;
  ++steps_;
}

}  // namespace baton::examples
