// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cuda {

// See core/ops/orthonormal.h. One block does it, and sums in double.
void OrthonormaliseColumns(const Tensor& matrix);

}  // namespace baton::cuda
