// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// Floating tensors of one GPU, all dense, those of a pair in one order of
// elements and not overlapping.
namespace baton::cuda {

struct TensorPair {
  Tensor target, source;
};

// target += source; of one dtype, or f32 and bf16 or f16.
void AddPairs(const std::vector<TensorPair>& pairs);
// target = source, cast.
void CopyPairs(const std::vector<TensorPair>& pairs);
// target = source, of one dtype, unless there is a condition, f32 [], that is
// 0.
void CopyPairsIf(const Tensor& condition, const std::vector<TensorPair>& pairs);
// targets = sources / scale, into f32; not_finite is 1 where one is not.
void UnscalePairs(const std::vector<TensorPair>& pairs, const Tensor& scale,
                  const Tensor& not_finite);
// Sums of squares, f64 [n]: one for each part of a tensor.
Tensor SquareSums(const std::vector<Tensor>& tensors);
void ZeroTensors(const std::vector<Tensor>& targets);

}  // namespace baton::cuda
