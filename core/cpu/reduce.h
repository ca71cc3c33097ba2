// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Reductions whose order depends on the shape and strides alone.
namespace baton::cpu {

// out = factor * sum of `x` over the axes marked in `reduced`. `out` has x's
// rank with 1 for each such axis; its dtype is x's, or i64 for integers, whose
// factor must be 1.
void SumAxes(const Tensor& out, const Tensor& x,
             const std::vector<bool>& reduced, double factor);

void FindExtremes(Extreme extreme, const Tensor& values, const Tensor& indices,
                  const Tensor& x, int axis);

// mean [] of (x - y)^2, in the tensors' dtype; floating tensors of one dtype,
// dense in one order.
void MeanSquaredDifference(const Tensor& mean, const Tensor& x,
                           const Tensor& y);

}  // namespace baton::cpu
