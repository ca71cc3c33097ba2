// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// What the rules of optimizers are written with. A rule is a struct of options
// that has
//   Fields()          of the options, for whoever sends or prints them
//   Check()           throws Error on options out of range
//   StepsRows()       whether a step by some rows of a gradient leaves the
//                     others, and what is kept of them, as they are
//   kSlots, Slots()   tensors that it keeps of a parameter
//   kRequired         the slots that no option leaves empty, as bits
//   Factors           numbers of a step, and FactorsOf(rate, step)
//   Element<T>        the new value and state of one element
// CPUs and GPUs compute with the same functions, which are templates because
// the square root and the like in them are no constants.

// Marks functions that CPUs and GPUs call for every element.
#define BATON_RULE __attribute__((always_inline)) constexpr

namespace baton::ops {

// A tensor that lies as the parameter, and what it is filled with at first.
struct StateSlot {
  const char* name = nullptr;  // null: not needed with these options
  double initial = 0;
};

// What is done to every element of a gradient before a rule sees it: its size
// is limited, then it is multiplied. NaN stays NaN.
template <typename T>
struct GradientClip {
  T limit, factor;
  BATON_RULE T operator()(T grad) const {
    const T below = grad > limit ? limit : grad;
    return factor * (below < -limit ? -limit : below);
  }
};

}  // namespace baton::ops
