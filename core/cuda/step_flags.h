// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/stream.h"

// What core/step_flags.h is made of on GPUs; `words` are StepNumber's, in
// pinned memory. Raises and waits may be captured, and all throw Error for what
// the device reports. core/no_cuda has the same symbols.
namespace baton::cuda {

// Loads the kernels of both: the first launch of a kernel that is not loaded
// waits for those that run, and so for a flag that it may itself be to raise.
void LoadFlagKernels(int device);
void RaiseFlag(uint64_t* flag, const uint64_t* words, const Stream& stream);
void AwaitFlag(const uint64_t* flag, const uint64_t* words,
               const Stream& stream);

}  // namespace baton::cuda
