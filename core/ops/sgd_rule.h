// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "core/ops/step_rule.h"

namespace baton::ops {

// torch.optim.SGD.
struct SgdRule {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;  // does not apply to the first step
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;

  static constexpr auto Fields() {
    using R = SgdRule;
    return std::tuple{&R::lr,           &R::momentum, &R::dampening,
                      &R::weight_decay, &R::nesterov, &R::maximize};
  }
  void Check() const;
  bool StepsRows() const { return momentum == 0 && weight_decay == 0; }

  static constexpr int kSlots = 1;
  static constexpr unsigned kRequired = 0;
  std::array<StateSlot, kSlots> Slots() const {
    return {StateSlot{momentum != 0 ? "momentum_buffer" : nullptr}};
  }

  struct Factors {
    double lr;
    double momentum;  // the factor of the previous momentum
    double damped;    // the factor of the gradient in the momentum
  };
  template <typename Real>
  BATON_RULE Factors FactorsOf(Real rate, int64_t step) const {
    const bool first = step == 1;
    return {rate, first ? 0 : momentum, first ? 1 : 1 - dampening};
  }

  template <typename T>
  struct Element {
    T lr, momentum, damped, lookahead, decay, sign;
    T nesterov;  // 1 or 0: compilers do not vectorise loops that test a bool

    BATON_RULE Element(const SgdRule& rule, const Factors& factors)
        : lr(static_cast<T>(factors.lr)),
          momentum(static_cast<T>(factors.momentum)),
          damped(static_cast<T>(factors.damped)),
          lookahead(static_cast<T>(rule.momentum)),
          decay(static_cast<T>(rule.weight_decay)),
          sign(rule.maximize ? T(-1) : T(1)),
          nesterov(rule.nesterov ? T(1) : T(0)) {}

    BATON_RULE void operator()(T& value, T grad, T (&state)[kSlots],
                               unsigned used) const {
      T step = sign * grad + decay * value;
      if ((used & 1U) != 0) {
        const T m = momentum * state[0] + damped * step;
        state[0] = m;
        step = nesterov != 0 ? step + lookahead * m : m;
      }
      value -= lr * step;
    }
  };
};

}  // namespace baton::ops
