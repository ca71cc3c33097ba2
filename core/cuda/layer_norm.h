// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Like core/cpu/layer_norm.h, on a GPU.
namespace baton::cuda {

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

}  // namespace baton::cuda
