// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/ops/kernel_args.h"

namespace baton::cpu {

// Writes (a[i] op b[i]) * scale to out[i], and also to copy[i] unless `copy` is
// null, for `count` elements of dense memory: one pass does all that a
// collective does with a part that has arrived. `op` is kAdd, kMul, kMaximum or
// kMinimum, computed as by Binary. A scale other than 1 is only for floating
// dtypes, whose sum is then rounded once. `a` or `b` may be `out` or `copy`;
// nothing else may overlap. Runs on the calling thread.
void Combine(BinaryOp op, DType dtype, int64_t count, const void* a,
             const void* b, double scale, void* out, void* copy);

}  // namespace baton::cpu
