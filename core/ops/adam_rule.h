// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.Adam, and AdamW with decoupled weight decay.
struct AdamRule {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool decoupled_weight_decay = false;

  static constexpr auto Fields() {
    using R = AdamRule;
    return std::tuple{&R::lr,           &R::beta1,
                      &R::beta2,        &R::eps,
                      &R::weight_decay, &R::amsgrad,
                      &R::maximize,     &R::decoupled_weight_decay};
  }
  void Check() const;
  bool StepsRows() const { return false; }

  static constexpr int kSlots = 3;
  static constexpr unsigned kRequired = 0b011;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{"exp_avg"}, StateSlot{"exp_avg_sq"},
            StateSlot{amsgrad ? "max_exp_avg_sq" : nullptr}};
  }

  struct Factors {
    double keep;  // the factor of the value: decoupled weight decay
    double step_size;
    double variance_scale;  // sqrt of the bias correction of the variance
  };
  template <typename Real>
  BATON_RULE Factors FactorsOf(Real rate, int64_t step) const {
    const Real number = static_cast<Real>(step);
    return {1 - rate * (decoupled_weight_decay ? weight_decay : 0),
            rate / (1 - std::pow(beta1, number)),
            std::sqrt(1 - std::pow(beta2, number))};
  }

  template <typename T>
  struct Element {
    T keep, step_size, variance_scale, beta1, beta2, rest1, rest2, eps, decay,
        sign;

    BATON_RULE Element(const AdamRule& rule, const Factors& factors)
        : keep(static_cast<T>(factors.keep)),
          step_size(static_cast<T>(factors.step_size)),
          variance_scale(static_cast<T>(factors.variance_scale)),
          beta1(static_cast<T>(rule.beta1)),
          beta2(static_cast<T>(rule.beta2)),
          rest1(static_cast<T>(1 - rule.beta1)),
          rest2(static_cast<T>(1 - rule.beta2)),
          eps(static_cast<T>(rule.eps)),
          decay(static_cast<T>(
              rule.decoupled_weight_decay ? 0 : rule.weight_decay)),
          sign(rule.maximize ? T(-1) : T(1)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned used) const {
      const T kept = keep * value;
      const T g = sign * grad + decay * kept;
      state[0] = beta1 * state[0] + rest1 * g;
      state[1] = beta2 * state[1] + rest2 * g * g;
      T variance = state[1];
      if ((used & 4U) != 0) {
        variance = state[2] < variance ? variance : state[2];
        state[2] = variance;
      }
      value = kept - step_size * (state[0] /
                                  (std::sqrt(variance) / variance_scale + eps));
    }
  };
};

}  // namespace baton::ops
