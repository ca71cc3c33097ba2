// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/loss_args.h"
#include "core/tensor.h"

namespace baton::cpu {

// Computes the loss or a derivative of each element
// (core/ops/point_loss_formula.h). All tensors have one shape and one floating
// dtype; inputs may be expanded views.
void ComputePointLoss(const Tensor& out, PointLoss loss, LossPart part,
                      const Tensor& x, const Tensor& target, double parameter);

}  // namespace baton::cpu
