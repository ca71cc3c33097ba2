// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cuda {

// Like core/cpu/sort.h; throws Error for more than 2^31 - 1 elements.
void Sort(const Tensor& values, const Tensor& indices, const Tensor& x,
          bool descending);

}  // namespace baton::cuda
