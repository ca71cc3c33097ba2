// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cuda {

// Computes y[n, c, h, w] += bias[c]. y is dense in one of the two layouts, and
// bias is dense.
void AddChannelBias(const Tensor& y, const Tensor& bias);

}  // namespace baton::cuda
