// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"

// How a channel of GPUs proves itself: what one process wrote, another one sums
// up where it came.
namespace baton::rpc {

// 4 KB of random words, on the CPU.
Tensor ProofWords();

// Of the bytes of a tensor of the CPU.
uint64_t SumOf(const Tensor& tensor);

}  // namespace baton::rpc
