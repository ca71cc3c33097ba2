// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"

// How a channel for GPUs proves that it works: one process writes random words,
// and the other one returns the sum of what it reads.
namespace baton::rpc {

// Returns 4 KB of random words, on the CPU.
Tensor ProofWords();

// Returns the sum of the bytes of a CPU tensor.
uint64_t SumOf(const Tensor& tensor);

}  // namespace baton::rpc
