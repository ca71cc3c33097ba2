// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/loss_args.h"
#include "core/tensor.h"

namespace baton::cuda {

// Like core/cpu/loss.h; the logarithm of a negative number is NaN.
void ComputePointLoss(const Tensor& out, PointLoss loss, LossPart part,
                      const Tensor& x, const Tensor& target, double parameter);

}  // namespace baton::cuda
