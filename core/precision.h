// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// These settings control the precision and reproducibility of products and
// convolutions in GPU libraries. They apply to the whole process and to later
// calls. Thread-safe.
namespace baton {

// Allows products and convolutions of f32 to round their operands to TF32,
// which has ten bits of mantissa, to use tensor cores; sums stay f32. Default:
// false. Does not affect other dtypes or the CPU.
void AllowTf32(bool allow);
bool Tf32Allowed();

// Requires that equal calls give equal bits on GPUs, even if another algorithm
// would be faster. Default: false. On the CPU they always do.
void SetDeterministic(bool deterministic);
bool Deterministic();

}  // namespace baton
