// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

// Reductions on a GPU; equal calls on GPUs of one model give equal bits. f64
// sums in f64, integers in i64, everything else in f32.
namespace baton::cuda {

// Like core/cpu/reduce.h.
void SumAxes(const Tensor& out, const Tensor& x,
             const std::vector<bool>& reduced, double factor);

void FindExtremes(Extreme extreme, const Tensor& values, const Tensor& indices,
                  const Tensor& x, int axis);

// These compute mean [] of (x - y)^2, and its gradient times dy [] as dx. dy
// has x's dtype; x, y and dx are floating, of one dtype, and dense in one
// order.
void MeanSquaredDifference(const Tensor& mean, const Tensor& x,
                           const Tensor& y);
void MeanSquaredDifferenceBackward(const Tensor& dx, const Tensor& x,
                                   const Tensor& y, const Tensor& dy);

// Computes total [], floating, = factor * sum of `parts`, which are dense: f64
// for an f64 total, otherwise f32.
void SumParts(const Tensor& total, const Tensor& parts, double factor);

}  // namespace baton::cuda
