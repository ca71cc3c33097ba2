// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/cuda/conv_plan.h"
#include "core/cuda/launch.h"
#include "core/tensor.h"

namespace baton::cuda {

// Returns the plan by which to run `problem` on launch's GPU, as
// core/conv_tuning.h says. A search runs candidates on `operands` and
// overwrites their output, which must not hold a value yet. If the problem
// accumulates and WouldTry is true, that output must be `sum`, a tensor of one
// axis that is used for nothing else. Engines that do not add although they
// should are skipped; if none is known to add, the plan does not accumulate
// (ConvPlan::accumulates). Throws Error(Unimplemented) if cuDNN has no way to
// run the problem. Thread-safe.
std::shared_ptr<const ConvPlan> ConvPlanFor(const Launch& launch,
                                            const ConvProblem& problem,
                                            cudnnHandle_t handle,
                                            const ConvOperands& operands,
                                            const Tensor& sum);

// Returns whether ConvPlanFor would run candidates now.
bool WouldTry(const Launch& launch, const ConvProblem& problem);

}  // namespace baton::cuda
