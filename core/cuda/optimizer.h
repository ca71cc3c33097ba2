// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/optimizer.h"

namespace baton::cuda {

// Steps parameters of one GPU, a launch for some hundreds of them. The group is
// as core/ops/optimizer.h has checked it: dense, all tensors of a target in the
// same order of elements; rate, scale and skip one tensor for all targets.
void OptimizerStep(const ops::StepGroup& group, double limit);

}  // namespace baton::cuda
