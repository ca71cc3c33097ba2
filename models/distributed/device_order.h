// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "models/distributed/schedule.h"

namespace baton::dist {

// How long the instructions of a stage take on one micro-batch, in any unit.
struct StageCosts {
  double forward = 4;
  double backward = 6;
  double weights = 3;

  double& of(StageOp op) {
    return op == StageOp::kForward    ? forward
           : op == StageOp::kBackward ? backward
                                      : weights;
  }
  double of(StageOp op) const { return StageCosts(*this).of(op); }
};

// Rows of each group of `at_once` micro-batches, over the mean of the groups:
// how their costs differ.
std::vector<double> GroupSizes(const std::vector<RowRange>& micro_batches,
                               size_t at_once);

// The order in which one thread gives a step of Schedule::kZeroBubble to
// devices that each do what they are given in turn; stage s is on device
// device_of_stage[s], and a device may have several (interleaved stages:
// Narayanan et al., "Efficient Large-Scale Language Model Training", SC 2021).
// A list schedule by the expected costs of each stage: on each device, what can
// begin first does; of several a backward before a forward before gradients of
// weights, which so fill what would be idle. `sizes`: what each micro-batch
// costs of that, such as its rows over the mean. A stage holds MostHeld
// micro-batches; gradients of weights wait for gaps without a bound. Throws
// Error unless there is a stage, a micro-batch, and as many costs as stages.
std::vector<IssuedInstruction> ZeroBubbleOrder(
    const std::vector<int>& device_of_stage,
    const std::vector<StageCosts>& costs, const std::vector<double>& sizes);

}  // namespace baton::dist
