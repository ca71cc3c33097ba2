// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Copies within one GPU; core/cuda/memory.h has all others.
namespace baton::cuda {

// Writes `source` to `target`, both on one GPU. They have equal shapes, any
// strides and any dtypes, which are converted as on the CPU, and do not
// overlap.
void CopyOnDevice(const Tensor& target, const Tensor& source);
void FillOnDevice(const Tensor& target, double value);

// Two cases of CopyOnDevice, for a launch that has begun: dtypes differ, or
// rows that are dense in the source are columns of the target. CopyTransposed
// returns false, and does nothing, if the latter is not the case.
class Launch;
void Cast(const Launch& launch, const Tensor& target, const Tensor& source);
bool CopyTransposed(const Launch& launch, const Tensor& target,
                    const Tensor& source);

}  // namespace baton::cuda
