// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/stream.h"
#include "core/stream.h"

namespace baton::cuda {

// Returns CUDA's handle of a GPU's stream; within a capture, the capture's own.
cudaStream_t NativeStream(const Stream& stream);
// Makes another stream, which is never destroyed.
cudaStream_t NewStream(int device, StreamPriority priority);

}  // namespace baton::cuda
