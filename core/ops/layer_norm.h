// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

struct LayerNormResult {
  Tensor y;
  Tensor mean;            // [rows], f32 (f64 for f64)
  Tensor inverse_stddev;  // [rows]
};

// y = (x - mean) / sqrt(variance + eps) * gamma + beta, where the last axes of
// x, which is floating, are gamma's shape and each row, which is gamma.numel()
// elements, has its own mean and biased variance. gamma and beta have one shape
// and any floating dtype. Statistics and sums are f32 (f64 for f64); y is
// row-major, of x's dtype.
LayerNormResult LayerNorm(const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, double eps);

// The gradient of x. `forward` as LayerNorm gave it; its y is not read.
Tensor LayerNormBackward(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                         const LayerNormResult& forward);

struct LayerNormGradients {
  Tensor dgamma;  // f32 (f64 for f64), of gamma's shape
  Tensor dbeta;
};
// The order of summation depends on the shape alone, on a GPU also on its
// model.
LayerNormGradients LayerNormParameterGradients(const Tensor& dy,
                                               const Tensor& x,
                                               const Tensor& gamma,
                                               const LayerNormResult& forward);

// The same with x [N, C, ...] and gamma and beta [C]: a row is one image's
// C / groups channels, so that there are N * groups of them; `groups` divides
// C.
LayerNormResult GroupNorm(const Tensor& x, int64_t groups, const Tensor& gamma,
                          const Tensor& beta, double eps);
Tensor GroupNormBackward(const Tensor& dy, const Tensor& x, int64_t groups,
                         const Tensor& gamma, const LayerNormResult& forward);
LayerNormGradients GroupNormParameterGradients(const Tensor& dy,
                                               const Tensor& x, int64_t groups,
                                               const Tensor& gamma,
                                               const LayerNormResult& forward);

}  // namespace baton::ops
