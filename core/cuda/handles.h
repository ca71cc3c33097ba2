// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include "core/stream.h"

namespace baton::cuda {

// CUDA's own handle of a GPU's stream: within a capture the capture's own.
cudaStream_t NativeStream(const Stream& stream);
// Another, never destroyed; of a companion's low priority or of the highest.
cudaStream_t NewStream(int device, bool companion);

}  // namespace baton::cuda
