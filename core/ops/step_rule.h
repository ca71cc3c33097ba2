// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// The rules of optimizers have this in common. A rule is a struct of options
// with
//   Fields()          the members of the options, for printing and sending them
//   Check()           throws Error for options out of range
//   StepsRows()       whether a step may be limited to the rows that have a
//                     gradient: other rows and their state would not change
//   kSlots, Slots()   the state tensors that it keeps for each parameter
//   kRequired         the slots that are used whatever the options, as bits
//   Factors           the numbers of one step; FactorsOf(rate, step) makes them
//   Element<T>        computes the new value and state of one element
// CPUs and GPUs call the same functions. These are templates because a
// constexpr function that is not a template may not call functions such as
// std::sqrt.

// Marks functions that CPUs and GPUs call for every element.
#define BATON_RULE __attribute__((always_inline)) constexpr

namespace baton::ops {

// A state tensor with the parameter's shape and memory order, and its initial
// value.
struct StateSlot {
  const char* name = nullptr;  // null: not needed with these options
  double initial = 0;
};

// Limits the size of each element of a gradient and then multiplies it, before
// the rule gets it. NaN stays NaN.
template <typename T>
struct GradientClip {
  T limit, factor;
  BATON_RULE T operator()(T grad) const {
    const T below = grad > limit ? limit : grad;
    return factor * (below < -limit ? -limit : below);
  }
};

}  // namespace baton::ops
