// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/ops/kernel_args.h"

namespace baton::cpu {

// out[i] = (a[i] op b[i]) * scale for `count` elements of dense memory, and the
// same to copy[i] unless that is null: what a collective does with a part that
// has come, in one pass. `op` is kAdd, kMul, kMaximum or kMinimum, as Binary
// computes them; a scale other than 1 is for floating dtypes alone, whose sum
// is then rounded once. `a` or `b` may be `out` or `copy`; nothing else may
// overlap. On the calling thread.
void Combine(BinaryOp op, DType dtype, int64_t count, const void* a,
             const void* b, double scale, void* out, void* copy);

}  // namespace baton::cpu
