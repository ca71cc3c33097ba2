// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include "core/stream.h"

namespace baton::cuda {

// CUDA's own handle of a GPU's stream.
cudaStream_t NativeStream(const Stream& stream);

}  // namespace baton::cuda
