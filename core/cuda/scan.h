// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cuda {

// Like core/cpu/scan.h, but f32, f16 and bf16 sum in f32. Equal calls give
// equal bits.
void CumSum(const Tensor& out, const Tensor& x, int axis, bool reverse);

}  // namespace baton::cuda
