// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/ops/kernel_args.h"

namespace baton::cpu {

// A gradient: of the value's dtype or, for f32 values, bf16 or f16.
struct Gradient {
  DType dtype;
  const void* data;
};

// Elements begin .. end of dense f32 or f64 arrays; `momentum` and
// `max_variance` may be null.
void SgdRange(DType dtype, void* value, const Gradient& grad, void* momentum,
              int64_t begin, int64_t end, const SgdCoefficients& c);
void AdamRange(DType dtype, void* value, const Gradient& grad, void* mean,
               void* variance, void* max_variance, int64_t begin, int64_t end,
               const AdamCoefficients& c);
// Values of f32 get those elements of `lowered`, of bf16 or f16, that they are
// not when rounded.
void TakeBackRange(DType dtype, void* value, const void* lowered, int64_t begin,
                   int64_t end);
// Rounds f32 values to `dtype`, bf16 or f16.
void LowerRange(DType dtype, void* lowered, const void* value, int64_t begin,
                int64_t end);

}  // namespace baton::cpu
