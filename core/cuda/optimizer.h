// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/optimizer.h"

namespace baton::cuda {

// Steps parameters of one GPU, some hundreds of them in one launch.
// core/ops/optimizer.h has checked the group: all tensors are dense, those of a
// target have one order of elements, and rate, scale and skip are each one
// tensor for all targets.
void OptimizerStep(const ops::StepGroup& group, double limit);

}  // namespace baton::cuda
