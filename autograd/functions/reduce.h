// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "autograd/variable.h"

namespace baton::autograd {

Variable Sum(const Variable& x);  // shape []
Variable Sum(const Variable& x, const std::vector<int>& axes,
             bool keep_dims = false);
Variable Mean(const Variable& x);
Variable Mean(const Variable& x, const std::vector<int>& axes,
              bool keep_dims = false);

// If several elements are extreme, the first gets the gradient.
struct ValuesAndIndices {
  Variable values;
  Tensor indices;  // i64
};
ValuesAndIndices Max(const Variable& x, int axis, bool keep_dims = false);
ValuesAndIndices Min(const Variable& x, int axis, bool keep_dims = false);

}  // namespace baton::autograd
