// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.Adamax.
struct AdamaxRule {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;

  static constexpr auto Fields() {
    using R = AdamaxRule;
    return std::tuple{&R::lr,  &R::beta1,        &R::beta2,
                      &R::eps, &R::weight_decay, &R::maximize};
  }
  void Check() const;
  bool StepsRows() const { return false; }

  static constexpr int kSlots = 2;
  static constexpr unsigned kRequired = 0b11;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{"exp_avg"}, StateSlot{"exp_inf"}};
  }

  struct Factors {
    double step_size;
  };
  template <typename Real>
  BATON_RULE Factors FactorsOf(Real rate, int64_t step) const {
    return {rate / (1 - std::pow(beta1, static_cast<Real>(step)))};
  }

  template <typename T>
  struct Element {
    T step_size, rest1, beta2, eps, decay, sign;

    BATON_RULE Element(const AdamaxRule& rule, const Factors& factors)
        : step_size(static_cast<T>(factors.step_size)),
          rest1(static_cast<T>(1 - rule.beta1)),
          beta2(static_cast<T>(rule.beta2)),
          eps(static_cast<T>(rule.eps)),
          decay(static_cast<T>(rule.weight_decay)),
          sign(rule.maximize ? T(-1) : T(1)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned) const {
      const T g = sign * grad + decay * value;
      state[0] += rest1 * (g - state[0]);
      const T kept = beta2 * state[1], size = (g < 0 ? -g : g) + eps;
      state[1] = kept < size ? size : kept;
      value -= step_size * (state[0] / state[1]);
    }
  };
};

}  // namespace baton::ops
