// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Sums along `axis` up to and with each element, or, in reverse, from it to the
// end. Floating dtypes stay, and f16 and bf16 sum in f32 or better; all others
// sum in i64, which is then the result's. The order of additions depends on the
// shape and strides alone (on a GPU also on its model).
Tensor CumSum(const Tensor& x, int axis, bool reverse = false);

}  // namespace baton::ops
