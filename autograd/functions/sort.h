// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/functions/reduce.h"
#include "autograd/variable.h"

// Differentiable versions of core/ops/sort.h. ArgSort, which has no gradient,
// is only there.
namespace baton::autograd {

ValuesAndIndices Sort(const Variable& x, int axis = -1,
                      bool descending = false);
ValuesAndIndices TopK(const Variable& x, int64_t k, int axis = -1,
                      bool largest = true);

}  // namespace baton::autograd
