// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.SparseAdam: rows without a gradient in a step keep their value
// and also their means.
struct SparseAdamRule {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool maximize = false;

  static constexpr auto Fields() {
    using R = SparseAdamRule;
    return std::tuple{&R::lr, &R::beta1, &R::beta2, &R::eps, &R::maximize};
  }
  void Check() const;
  bool StepsRows() const { return true; }

  static constexpr int kSlots = 2;
  static constexpr unsigned kRequired = 0b11;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{"exp_avg"}, StateSlot{"exp_avg_sq"}};
  }

  struct Factors {
    double step_size;
  };
  template <typename Real>
  BATON_RULE Factors FactorsOf(Real rate, int64_t step) const {
    const Real number = static_cast<Real>(step);
    return {rate * std::sqrt(1 - std::pow(beta2, number)) /
            (1 - std::pow(beta1, number))};
  }

  template <typename T>
  struct Element {
    T step_size, rest1, rest2, eps, sign;

    BATON_RULE Element(const SparseAdamRule& rule, const Factors& factors)
        : step_size(static_cast<T>(factors.step_size)),
          rest1(static_cast<T>(1 - rule.beta1)),
          rest2(static_cast<T>(1 - rule.beta2)),
          eps(static_cast<T>(rule.eps)),
          sign(rule.maximize ? T(-1) : T(1)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned) const {
      const T g = sign * grad;
      state[0] += rest1 * (g - state[0]);
      state[1] += rest2 * (g * g - state[1]);
      value -= step_size * (state[0] / (std::sqrt(state[1]) + eps));
    }
  };
};

}  // namespace baton::ops
