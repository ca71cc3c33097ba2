// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace baton::cpu {

// Coefficients as the element type sees them.
struct SgdCoefficients {
  double lr;
  double momentum;  // 0 on the first step
  double damped;    // factor of the gradient in the momentum
  double lookahead;
  double weight_decay;
  double sign;  // of the gradient
  bool nesterov;
};

struct AdamCoefficients {
  double keep;  // factor of the value: decoupled weight decay
  double step_size;
  double beta1;
  double beta2;
  double variance_scale;  // sqrt of the variance's bias correction
  double eps;
  double weight_decay;
  double sign;
};

// Elements begin .. end of dense f32 or f64 arrays; `momentum` and
// `max_variance` may be null.
void SgdRange(DType dtype, void* value, const void* grad, void* momentum,
              int64_t begin, int64_t end, const SgdCoefficients& c);
void AdamRange(DType dtype, void* value, const void* grad, void* mean,
               void* variance, void* max_variance, int64_t begin, int64_t end,
               const AdamCoefficients& c);

}  // namespace baton::cpu
