// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/memory.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

int DeviceCount() { return 0; }
void* Allocate(size_t, int) { FailWithoutCuda("allocate"); }
void Free(void*, int) { FailWithoutCuda("free"); }
void Copy(const Tensor&, const Tensor&) { FailWithoutCuda("copy"); }
void Fill(const Tensor&, double) { FailWithoutCuda("fill"); }

}  // namespace baton::cuda
