// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.Adadelta.
struct AdadeltaRule {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;

  static constexpr auto Fields() {
    using R = AdadeltaRule;
    return std::tuple{&R::lr, &R::rho, &R::eps, &R::weight_decay, &R::maximize};
  }
  void Check() const;
  bool StepsRows() const { return false; }

  static constexpr int kSlots = 2;
  static constexpr unsigned kRequired = 0b11;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{"square_avg"}, StateSlot{"acc_delta"}};
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
    T lr, rho, rest, eps, decay, sign;

    BATON_RULE Element(const AdadeltaRule& rule, const Factors& factors)
        : lr(static_cast<T>(factors.lr)),
          rho(static_cast<T>(rule.rho)),
          rest(static_cast<T>(1 - rule.rho)),
          eps(static_cast<T>(rule.eps)),
          decay(static_cast<T>(rule.weight_decay)),
          sign(rule.maximize ? T(-1) : T(1)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned) const {
      const T g = sign * grad + decay * value;
      state[0] = rho * state[0] + rest * g * g;
      const T delta = std::sqrt(state[1] + eps) / std::sqrt(state[0] + eps) * g;
      state[1] = rho * state[1] + rest * delta * delta;
      value -= lr * delta;
    }
  };
};

}  // namespace baton::ops
