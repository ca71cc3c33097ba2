// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cpu {

// Writes sums along `axis`, as ops::CumSum defines them. Both tensors have one
// shape and one dtype, floating or i64; floating values are summed in f64.
void CumSum(const Tensor& out, const Tensor& x, int axis, bool reverse);

}  // namespace baton::cpu
