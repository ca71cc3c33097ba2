// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace baton {
namespace cuda {
int DeviceCount();  // core/cuda/memory.h, which is not installed
}

// Returns how many GPUs this process sees: 0 where there are none, and in
// builds without CUDA.
inline int GpuCount() { return cuda::DeviceCount(); }

}  // namespace baton
