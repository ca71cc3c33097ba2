// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Reductions in an order that depends only on the shape and strides.
namespace baton::cpu {

// Computes out = factor * sum of `x` over the axes marked in `reduced`. `out`
// has x's rank, with 1 for each such axis. Its dtype is x's, or i64 for
// integers; their factor must be 1.
void SumAxes(const Tensor& out, const Tensor& x,
             const std::vector<bool>& reduced, double factor);

void FindExtremes(Extreme extreme, const Tensor& values, const Tensor& indices,
                  const Tensor& x, int axis);

// Writes the mean of (x - y)^2 to mean [], in the tensors' dtype. x and y are
// floating, have one dtype and are dense in one order.
void MeanSquaredDifference(const Tensor& mean, const Tensor& x,
                           const Tensor& y);

}  // namespace baton::cpu
