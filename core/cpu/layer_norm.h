// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Of the dense rows of x [rows, width]; gamma and beta and the statistics
// [rows] are f64 for f64, else f32. Row r is group r % groups of an image:
// gamma and beta have groups * channels elements, and each of a row's channels
// is width / channels elements beside each other. A layer norm has one group,
// whose channels are its elements.
namespace baton::cpu {

void LayerNorm(const Tensor& y, const Tensor& mean,
               const Tensor& inverse_stddev, const Tensor& x,
               const Tensor& gamma, const Tensor& beta, double eps,
               int64_t groups);
void LayerNormBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       const Tensor& gamma, const Tensor& mean,
                       const Tensor& inverse_stddev, int64_t groups);
// dgamma and dbeta, of gamma's size each, dense.
void LayerNormParameters(const Tensor& dgamma, const Tensor& dbeta,
                         const Tensor& dy, const Tensor& x, const Tensor& mean,
                         const Tensor& inverse_stddev, int64_t groups);

}  // namespace baton::cpu
