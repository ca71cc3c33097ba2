// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/optimizer.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void OptimizerStep(const ops::StepGroup&, double) {
  FailWithoutCuda("optimizer");
}

}  // namespace baton::cuda
