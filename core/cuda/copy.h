// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Copies within one GPU; core/cuda/memory.h has the others.
namespace baton::cuda {

// Writes `source` to `target`, both on one GPU: equal shapes, any strides, any
// dtypes, which are converted as on the CPU; the two do not overlap.
void CopyOnDevice(const Tensor& target, const Tensor& source);
void FillOnDevice(const Tensor& target, double value);

// The two cases of CopyOnDevice for launches that are under way: dtypes differ,
// and rows that are dense in the source are columns of the target. The latter
// returns false, having done nothing, where that is not so.
class Launch;
void Cast(const Launch& launch, const Tensor& target, const Tensor& source);
bool CopyTransposed(const Launch& launch, const Tensor& target,
                    const Tensor& source);

}  // namespace baton::cuda
