// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// How exact and how repeatable GPU libraries' products and convolutions are.
// Both hold for the whole process and for calls that begin afterwards.
// Thread-safe.
namespace baton {

// Whether products and convolutions of f32 may round their operands to TF32,
// ten bits of mantissa, for the tensor cores' sake; sums stay f32. False at
// first. Says nothing about other dtypes, nor about the CPU.
void AllowTf32(bool allow);
bool Tf32Allowed();

// Whether equal calls must give equal bits on GPUs, even where the faster
// algorithm would not. False at first. The CPU always does.
void SetDeterministic(bool deterministic);
bool Deterministic();

}  // namespace baton
