// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "autograd/variable.h"

// These return views, which share storage and version, where Tensor's own
// methods do.
namespace baton::autograd {

Variable Reshape(const Variable& x, const Shape& shape);
Variable Flatten(const Variable& x, int start_axis = 0, int end_axis = -1);
Variable Transpose(const Variable& x, int axis_a, int axis_b);
Variable Permute(const Variable& x, const std::vector<int>& axes);
Variable Slice(const Variable& x, int axis, int64_t start, int64_t end,
               int64_t step = 1);
Variable Select(const Variable& x, int axis, int64_t index);
Variable Unsqueeze(const Variable& x, int axis);
Variable Squeeze(const Variable& x, int axis);
Variable Expand(const Variable& x, const Shape& shape);
// Splits x into parts of `size` along `axis`; the last may be smaller.
std::vector<Variable> Split(const Variable& x, int64_t size, int axis = 0);
// Returns x itself if it is already contiguous in that format.
Variable Contiguous(const Variable& x,
                    MemoryFormat format = MemoryFormat::kContiguous);

}  // namespace baton::autograd
