// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/ops/optimizer_rules.h"
#include "core/tensor.h"

// Makes one optimizer step of many parameters, in place and in one parallel
// loop (on a GPU, some hundreds of them in one launch). The formulas and
// options are those of PyTorch (torch.optim). Every tensor written gets a new
// version. The step is element-wise, so results do not depend on the number of
// threads.
namespace baton::ops {

// A parameter. Value, gradient and state have one shape and the dtype f32 or
// f64; the value must be dense. The gradient of an f32 value may be bf16 or
// f16.
//
// All other tensors are optional:
//   rows     i64 [n]: the rows of the value [V, D] that grad [n, D] belongs to,
//            each at most once (core/ops/rows.h). Only these are stepped. Needs
//            a rule with StepsRows(), or `rows_apart`, with which each row is
//            stepped as a parameter of its own.
//   lowered  a bf16 or f16 copy of an f32 value. It gets the new value in the
//            same pass, rounded. If an element of it is not the value rounded,
//            others have written it, and the step begins from that element.
//   rate     f64 []: replaces the rule's lr
//   count    i64 []: the number of steps done, which this step increments
//   scale    f64 []: a factor of the gradient
//   skip     f32 []: if it is not 0, the step writes and counts nothing
// rate, scale and skip are each one tensor for all targets of a group on one
// device. All of these are on the value's device, so the replays of a recorded
// step (core/graph.h) use a new rate, continue the count, and can skip.
struct StepTarget {
  Tensor value = {};
  Tensor grad = {};
  std::vector<Tensor> state = {};  // the rule's slots; undefined if unused
  // The number of this step; the first is 1. Not read if count is defined.
  int64_t step = 1;
  Tensor rows = {};
  bool rows_apart = false;
  Tensor lowered = {}, rate = {}, count = {}, scale = {}, skip = {};
};

// Parameters that one rule steps.
struct StepGroup {
  std::vector<StepTarget> targets;
  StepRule rule;
};

// Clamps each element of a gradient to [-limit, limit] before it is scaled.
// Throws Error, before it writes anything, if a target does not fit its rule.
void OptimizerStep(const std::vector<StepGroup>& groups,
                   double limit = std::numeric_limits<double>::infinity());

}  // namespace baton::ops
