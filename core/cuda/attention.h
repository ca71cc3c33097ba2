// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/kernel_args.h"
#include "core/tensor.h"

namespace baton::cuda {

// Turns dense f32 or f64 scores [n, H, t, s] into weights, in place.
void AttentionWeights(const Tensor& scores, const AttentionRows& rows);

}  // namespace baton::cuda
