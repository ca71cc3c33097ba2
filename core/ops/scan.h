// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Returns cumulative sums along `axis`: of all elements up to and including
// each one or, with `reverse`, from each one to the end. Floating dtypes are
// kept, and f16 and bf16 are summed in f32 or better; other dtypes give i64.
// The order of additions depends only on shape and strides (on a GPU also on
// its model).
Tensor CumSum(const Tensor& x, int axis, bool reverse = false);

}  // namespace baton::ops
