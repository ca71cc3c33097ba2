// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>

namespace baton::examples {

// CartPole-v1: a pole stands on a cart, which is pushed left or right every
// fiftieth of a second. The reward of an episode is the number of pushes, at
// most kMostSteps, until the pole leans by more than 12 degrees or the cart is
// more than 2.4 m from the middle. Thread-compatible.
class CartPole {
 public:
  static constexpr int64_t kMostSteps = 500;
  static constexpr int64_t kNumbers = 4;
  static constexpr int64_t kActions = 2;  // left, right
  // Each number of the initial state is in [-kStart, kStart).
  static constexpr double kStart = 0.05;
  // The cart's position (m) and speed, the pole's angle (radians) and its
  // speed.
  using State = std::array<float, kNumbers>;

  explicit CartPole(const State& start);

  void Push(int32_t action);
  State state() const;
  int64_t steps() const { return steps_; }
  bool over() const;

 private:
  double place_, speed_, angle_, turning_;
  int64_t steps_ = 0;
};

}  // namespace baton::examples
