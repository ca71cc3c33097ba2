// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/optimizer.h"

// Steps of all parameters of one GPU, a launch for some hundreds of them.
// Targets are as core/ops/optimizer.h has checked them: dense, all tensors of
// one in the same order of elements. Rates are one tensor for all targets.
namespace baton::cuda {

void SgdStep(const std::vector<ops::SgdTarget>& targets,
             const ops::SgdOptions& options);
void AdamStep(const std::vector<ops::AdamTarget>& targets,
              const ops::AdamOptions& options);

}  // namespace baton::cuda
