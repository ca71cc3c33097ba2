// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.Rprop.
struct RpropRule {
  double lr = 1e-2;  // the size of each element's first step
  double eta_minus = 0.5;
  double eta_plus = 1.2;
  double step_size_min = 1e-6;
  double step_size_max = 50;
  bool maximize = false;

  static constexpr auto Fields() {
    using R = RpropRule;
    return std::tuple{&R::lr,
                      &R::eta_minus,
                      &R::eta_plus,
                      &R::step_size_min,
                      &R::step_size_max,
                      &R::maximize};
  }
  void Check() const;
  bool StepsRows() const { return false; }

  static constexpr int kSlots = 2;
  static constexpr unsigned kRequired = 0b11;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{"prev"}, StateSlot{"step_size", lr}};
  }

  struct Factors {
    double lr;  // not used: the state holds each element's step size
  };
  template <typename Real>
  BATON_RULE Factors FactorsOf(Real rate, int64_t) const {
    return {rate};
  }

  template <typename T>
  struct Element {
    T shrink, grow, least, most, sign;

    BATON_RULE Element(const RpropRule& rule, const Factors&)
        : shrink(static_cast<T>(rule.eta_minus)),
          grow(static_cast<T>(rule.eta_plus)),
          least(static_cast<T>(rule.step_size_min)),
          most(static_cast<T>(rule.step_size_max)),
          sign(rule.maximize ? T(-1) : T(1)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned) const {
      const T turn = sign * grad * state[0];
      T size = state[1] * (turn > 0 ? grow : turn < 0 ? shrink : T(1));
      size = size < least ? least : size;
      size = size > most ? most : size;
      const T g = turn < 0 ? T(0) : sign * grad;
      value -= g > 0 ? size : g < 0 ? -size : g;
      state[0] = g;
      state[1] = size;
    }
  };
};

}  // namespace baton::ops
