// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

namespace baton::autograd {

// Returns (x - mean) / sqrt(variance + eps) * gamma + beta, with the mean and
// biased variance of each row of x. A row spans x's last axes, which have
// gamma's shape. gamma and beta have one shape and any floating dtype.
Variable LayerNorm(const Variable& x, const Variable& gamma,
                   const Variable& beta, double eps = 1e-5);

// Normalizes likewise over groups of channels: x [N, C, ...], gamma and beta
// [C]. Each image's C / groups channels of a group have their own mean and
// variance.
Variable GroupNorm(const Variable& x, int64_t groups, const Variable& gamma,
                   const Variable& beta, double eps = 1e-5);

}  // namespace baton::autograd
