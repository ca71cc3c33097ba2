// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Of the dense rows of x [rows, width]; gamma, beta [width] and the statistics
// [rows] are f64 for f64, else f32.
namespace baton::cpu {

void LayerNorm(const Tensor& y, const Tensor& mean,
               const Tensor& inverse_stddev, const Tensor& x,
               const Tensor& gamma, const Tensor& beta, double eps);
void LayerNormBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       const Tensor& gamma, const Tensor& mean,
                       const Tensor& inverse_stddev);
// dgamma and dbeta, width elements each, dense.
void LayerNormParameters(const Tensor& dgamma, const Tensor& dbeta,
                         const Tensor& dy, const Tensor& x, const Tensor& mean,
                         const Tensor& inverse_stddev);

}  // namespace baton::cpu
