// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Makes the columns of a contiguous f32 or f64 matrix [n, k] orthonormal, in
// place and from the first to the last, so that they span the same space: by
// modified Gram-Schmidt, which projects each column twice. A column that
// depends, up to rounding, on those before it becomes zeros. Meant for few
// columns; results are equal from run to run.
void OrthonormaliseColumns(const Tensor& matrix);

}  // namespace baton::ops
