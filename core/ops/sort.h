// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/reduce.h"
#include "core/tensor.h"

// These ops sort along an axis. They count NaN as greater than all numbers, and
// keep equal elements in their order. On a GPU x may have at most 2^31 - 1
// elements.
namespace baton::ops {

ValuesAndIndices Sort(const Tensor& x, int axis = -1, bool descending = false);
Tensor ArgSort(const Tensor& x, int axis = -1, bool descending = false);
// Returns the `k` greatest (or least) elements, sorted; k is at most the extent
// of the axis.
ValuesAndIndices TopK(const Tensor& x, int64_t k, int axis = -1,
                      bool largest = true);

}  // namespace baton::ops
