// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// All tensors are floating, dense and on one GPU. Those of a pair have one
// order of elements and do not overlap.
namespace baton::cuda {

struct TensorPair {
  Tensor target, source;
};

// Computes target += source. Both have one dtype, or target is f32 and source
// bf16 or f16.
void AddPairs(const std::vector<TensorPair>& pairs);
// Computes target = source, cast.
void CopyPairs(const std::vector<TensorPair>& pairs);
// Computes target = source, of one dtype, unless `condition`, an f32 [], is
// defined and 0.
void CopyPairsIf(const Tensor& condition, const std::vector<TensorPair>& pairs);
// Computes targets = sources / scale, into f32, and sets `not_finite` to 1 if
// any source is infinite or NaN.
void UnscalePairs(const std::vector<TensorPair>& pairs, const Tensor& scale,
                  const Tensor& not_finite);
// Returns sums of squares, f64 [n]: one for each part of a tensor.
Tensor SquareSums(const std::vector<Tensor>& tensors);
void ZeroTensors(const std::vector<Tensor>& targets);

}  // namespace baton::cuda
