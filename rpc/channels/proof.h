// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "rpc/channels/segment.h"

// How a channel for GPUs proves that it works: one process writes random words,
// and the other one returns the sum of what it reads.
namespace baton::rpc {

// Returns 4 KB of random words, on the CPU.
Tensor ProofWords();

// Returns the sum of the bytes of a CPU tensor.
uint64_t SumOf(const Tensor& tensor);

// 4 KB at the beginning of a segment, with which two processes check that both
// have mapped the same memory: the maker writes them, the other one checks and
// reverses them, and the maker checks that.
void WritePattern(const Segment& segment, uint64_t seed);
void TurnPattern(const Segment& segment);
// Returns whether the pattern, or its reverse, is there.
bool HasPattern(const Segment& segment, uint64_t seed, bool reversed);

}  // namespace baton::rpc
