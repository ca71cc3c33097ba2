// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.RMSprop.
struct RmsPropRule {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;

  static constexpr auto Fields() {
    using R = RmsPropRule;
    return std::tuple{&R::lr,       &R::alpha,    &R::eps,     &R::weight_decay,
                      &R::momentum, &R::centered, &R::maximize};
  }
  void Check() const;
  bool StepsRows() const { return false; }

  static constexpr int kSlots = 3;
  static constexpr unsigned kRequired = 1;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{"square_avg"},
            StateSlot{momentum != 0 ? "momentum_buffer" : nullptr},
            StateSlot{centered ? "grad_avg" : nullptr}};
  }

  struct Factors {
    double lr;
  };
  template <typename Real>
  BATON_RULE Factors FactorsOf(Real rate, int64_t) const {
    return {rate};
  }

  template <typename T>
  struct Element {
    T lr, alpha, rest, eps, decay, momentum, sign;

    BATON_RULE Element(const RmsPropRule& rule, const Factors& factors)
        : lr(static_cast<T>(factors.lr)),
          alpha(static_cast<T>(rule.alpha)),
          rest(static_cast<T>(1 - rule.alpha)),
          eps(static_cast<T>(rule.eps)),
          decay(static_cast<T>(rule.weight_decay)),
          momentum(static_cast<T>(rule.momentum)),
          sign(rule.maximize ? T(-1) : T(1)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned used) const {
      const T g = sign * grad + decay * value;
      state[0] = alpha * state[0] + rest * g * g;
      T variance = state[0];
      if ((used & 4U) != 0) {
        state[2] += rest * (g - state[2]);
        variance -= state[2] * state[2];
      }
      T step = g / (std::sqrt(variance) + eps);
      if ((used & 2U) != 0) {
        step += momentum * state[1];
        state[1] = step;
      }
      value -= lr * step;
    }
  };
};

}  // namespace baton::ops
