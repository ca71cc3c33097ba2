// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cpu {

// See core/ops/orthonormal.h. Arithmetic is done in double.
void OrthonormaliseColumns(const Tensor& matrix);

}  // namespace baton::cpu
