// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.Adagrad.
struct AdagradRule {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  static constexpr auto Fields() {
    using R = AdagradRule;
    return std::tuple{&R::lr,           &R::lr_decay,
                      &R::weight_decay, &R::initial_accumulator_value,
                      &R::eps,          &R::maximize};
  }
  void Check() const;
  bool StepsRows() const { return weight_decay == 0; }

  static constexpr int kSlots = 1;
  static constexpr unsigned kRequired = 1;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{"sum", initial_accumulator_value}};
  }

  struct Factors {
    double lr;
  };
  template <typename Real>
  BATON_RULE Factors FactorsOf(Real rate, int64_t step) const {
    return {rate / (1 + static_cast<double>(step - 1) * lr_decay)};
  }

  template <typename T>
  struct Element {
    T lr, decay, eps, sign;

    BATON_RULE Element(const AdagradRule& rule, const Factors& factors)
        : lr(static_cast<T>(factors.lr)),
          decay(static_cast<T>(rule.weight_decay)),
          eps(static_cast<T>(rule.eps)),
          sign(rule.maximize ? T(-1) : T(1)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned) const {
      const T g = sign * grad + decay * value;
      state[0] += g * g;
      value -= lr * (g / (std::sqrt(state[0]) + eps));
    }
  };
};

}  // namespace baton::ops
