// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/ops/optimizer_rules.h"
#include "core/tensor.h"

// One optimizer step of many parameters in one parallel sweep (on a GPU, in one
// launch for some hundreds of them), in place; counts a version of every tensor
// written. Element-wise, so that results do not depend on the number of
// threads. The formulas, and what the options mean, are PyTorch's
// (torch.optim).
namespace baton::ops {

// A parameter. Value, gradient and state have one shape, and the dtype f32 or
// f64; the value must be dense. Gradients of f32 values may be bf16 or f16.
//
// Any target may have besides:
//   rows     i64 [n], the rows of a value [V, D] that grad [n, D] is of, each
//            once (core/ops/rows.h): the step is of these alone; for rules that
//            StepsRows()
//   lowered  a bf16 or f16 copy of an f32 value, which gets the new value,
//            rounded, in the same pass; an element of it that is not the value
//            rounded was written by others, and is what the step begins from
//   rate     f64 [], instead of the rule's lr; one tensor for all targets of
//            a group and device
//   count    i64 [], steps done; counts this one
//   scale    f64 [], multiplies the gradient; one tensor likewise
//   skip     f32 [], where not 0 the step writes and counts nothing; one tensor
//            for all targets of a group and device
// They lie where the value does, so that the replays of a recorded step
// (core/graph.h) obey a new rate, go on counting, and skip without being told.
struct StepTarget {
  Tensor value = {};
  Tensor grad = {};
  std::vector<Tensor> state = {};  // the rule's slots; unused ones undefined
  int64_t step = 1;  // this one, the first is 1; not read beside a count
  Tensor rows = {};
  Tensor lowered = {}, rate = {}, count = {}, scale = {}, skip = {};
};

// Parameters that are stepped by one rule.
struct StepGroup {
  std::vector<StepTarget> targets;
  StepRule rule;
};

// No element of a gradient counts for more than `limit`, before it is scaled.
// Throws Error, before it writes, where a target does not fit.
void OptimizerStep(const std::vector<StepGroup>& groups,
                   double limit = std::numeric_limits<double>::infinity());

}  // namespace baton::ops
