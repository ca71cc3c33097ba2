// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cpu {

// Writes `source` to `target`, which have equal shapes, any strides and any
// dtypes, and do not overlap.
void Copy(const Tensor& target, const Tensor& source);
void Fill(const Tensor& target, double value);

}  // namespace baton::cpu
