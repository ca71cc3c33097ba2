// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/cuda/conv_plan.h"
#include "core/cuda/launch.h"
#include "core/tensor.h"

namespace baton::cuda {

// How to run `problem` on launch's GPU, as core/conv_tuning.h says. A search
// runs candidates on `operands`, whose output keeps no value of its own yet.
// Where the problem accumulates and WouldTry, that output is `sum`, of one axis
// and for this alone. Engines that forget what they are to add to are passed
// over; where none is known to add, the plan is one that does not
// (ConvPlan::accumulates). Throws Error(Unimplemented) where cuDNN has no way.
// Thread-safe.
std::shared_ptr<const ConvPlan> ConvPlanFor(const Launch& launch,
                                            const ConvProblem& problem,
                                            cudnnHandle_t handle,
                                            const ConvOperands& operands,
                                            const Tensor& sum);

// Whether ConvPlanFor would run candidates now.
bool WouldTry(const Launch& launch, const ConvProblem& problem);

}  // namespace baton::cuda
