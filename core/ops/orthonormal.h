// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Makes the columns of a contiguous f32 or f64 matrix [n, k] orthonormal, in
// place and from the first on, so that they span what they did (modified
// Gram-Schmidt, each twice). A column that depends on those before it, but for
// rounding, becomes zeros. For few columns; equal from run to run.
void OrthonormaliseColumns(const Tensor& matrix);

}  // namespace baton::ops
