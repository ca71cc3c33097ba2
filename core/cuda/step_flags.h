// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"

// Implements core/step_flags.h on GPUs. `words` are those of StepNumber, in
// pinned memory. Raises and waits may be captured. All functions throw Error
// for what the device reports. core/no_cuda has the same symbols.
namespace baton::cuda {

// Loads the kernels of these functions. The first launch of a kernel that is
// not loaded waits for running kernels, and so for a flag that it may itself
// have to raise.
void LoadFlagKernels(int device);
void BeginStep(uint64_t* words, uint64_t step, const Stream& stream);
void DecideStep(const uint64_t* flag, uint64_t* words, const Tensor& skip);
void RaiseFlagUnless(const Tensor& skip, uint64_t* flag, const uint64_t* words);
void RaiseFlag(uint64_t* flag, const uint64_t* words, const Stream& stream);
void AwaitFlag(const uint64_t* flag, const uint64_t* words,
               const Stream& stream);

}  // namespace baton::cuda
