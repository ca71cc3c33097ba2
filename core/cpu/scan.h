// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cpu {

// Sums along `axis`, as ops::CumSum says. Of one shape and dtype, floating or
// i64; floating values sum in f64.
void CumSum(const Tensor& out, const Tensor& x, int axis, bool reverse);

}  // namespace baton::cpu
