// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/loss.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void ComputePointLoss(const Tensor&, PointLoss, LossPart, const Tensor&,
                      const Tensor&, double) {
  FailWithoutCuda("point_loss");
}

}  // namespace baton::cuda
