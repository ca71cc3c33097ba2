// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

namespace baton {
class Tensor;
}

// The GPU's memory. core/no_cuda has the same symbols for builds without CUDA:
// there each throws Error(FailedPrecondition) naming the build option, except
// DeviceCount, which is 0.
namespace baton::cuda {

int DeviceCount();

void* Allocate(size_t bytes, int device);
void Free(void* data, int device);

// `target` has `source`'s shape; either side, or both, is on a CUDA device.
// Casts. Has ended on return when one side is the CPU.
void Copy(const Tensor& target, const Tensor& source);
void Fill(const Tensor& target, double value);

}  // namespace baton::cuda
