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

// Returns y = (x - mean) / sqrt(variance + eps) * gamma + beta. The last axes
// of x, which is floating, have gamma's shape; each row of gamma.numel()
// elements has its own mean and biased variance. gamma and beta have one shape
// and any floating dtype. Statistics and sums are f32 (f64 for f64); y is
// row-major and of x's dtype.
LayerNormResult LayerNorm(const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, double eps);

// Returns the gradient of x. `forward` is LayerNorm's result; its y is not
// read.
Tensor LayerNormBackward(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                         const LayerNormResult& forward);

struct LayerNormGradients {
  Tensor dgamma;  // f32 (f64 for f64), of gamma's shape
  Tensor dbeta;
};
// The order of summation depends only on the shape (on a GPU also on its
// model), so results are equal from run to run.
LayerNormGradients LayerNormParameterGradients(const Tensor& dy,
                                               const Tensor& x,
                                               const Tensor& gamma,
                                               const LayerNormResult& forward);

// Normalises x [N, C, ...] by groups, with gamma and beta [C]. This is like
// LayerNorm, but a row consists of C / groups channels of one image, so there
// are N * groups rows. `groups` must divide C.
LayerNormResult GroupNorm(const Tensor& x, int64_t groups, const Tensor& gamma,
                          const Tensor& beta, double eps);
Tensor GroupNormBackward(const Tensor& dy, const Tensor& x, int64_t groups,
                         const Tensor& gamma, const LayerNormResult& forward);
LayerNormGradients GroupNormParameterGradients(const Tensor& dy,
                                               const Tensor& x, int64_t groups,
                                               const Tensor& gamma,
                                               const LayerNormResult& forward);

}  // namespace baton::ops
