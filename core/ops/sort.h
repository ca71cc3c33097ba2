// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/reduce.h"
#include "core/tensor.h"

// Orders along an axis. NaN is greater than all numbers, and equal elements
// stay in the order in which they were. On a GPU at most 2^31 - 1 elements.
namespace baton::ops {

ValuesAndIndices Sort(const Tensor& x, int axis = -1, bool descending = false);
Tensor ArgSort(const Tensor& x, int axis = -1, bool descending = false);
// The `k` greatest (or least) elements, the first of them first; k is at most
// the extent of the axis.
ValuesAndIndices TopK(const Tensor& x, int64_t k, int axis = -1,
                      bool largest = true);

}  // namespace baton::ops
