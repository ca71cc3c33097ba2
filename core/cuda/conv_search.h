// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/cuda/conv_plan.h"
#include "core/cuda/launch.h"

namespace baton::cuda {

// How to run `problem` on launch's GPU, as core/conv_tuning.h says. A search
// runs candidates on `operands`, whose output keeps no value of its own yet;
// where the problem accumulates, the caller passes a scratch output. Throws
// Error(Unimplemented) where cuDNN has no way. Thread-safe.
std::shared_ptr<const ConvPlan> ConvPlanFor(const Launch& launch,
                                            const ConvProblem& problem,
                                            cudnnHandle_t handle,
                                            const ConvOperands& operands);

// Whether ConvPlanFor would search now.
bool WouldSearch(const Launch& launch, const ConvProblem& problem);

}  // namespace baton::cuda
