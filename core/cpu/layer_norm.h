// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Normalise the dense rows of x [rows, width]. gamma, beta and the statistics
// [rows] are f64 for f64 and f32 otherwise. Row r is group r % groups of an
// image: gamma and beta have groups * channels elements, and each channel of a
// row has width / channels adjacent elements. A layer norm has one group, whose
// channels are its elements.
namespace baton::cpu {

void LayerNorm(const Tensor& y, const Tensor& mean,
               const Tensor& inverse_stddev, const Tensor& x,
               const Tensor& gamma, const Tensor& beta, double eps,
               int64_t groups);
void LayerNormBackward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                       const Tensor& gamma, const Tensor& mean,
                       const Tensor& inverse_stddev, int64_t groups);
// Writes dgamma and dbeta, which are dense and have gamma's size.
void LayerNormParameters(const Tensor& dgamma, const Tensor& dbeta,
                         const Tensor& dy, const Tensor& x, const Tensor& mean,
                         const Tensor& inverse_stddev, int64_t groups);

}  // namespace baton::cpu
