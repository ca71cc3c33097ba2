// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autograd/variable.h"

// Differentiable versions of the ops in core/ops/indexing.h, with the same
// errors. Indices are i64 tensors.
namespace baton::autograd {

Variable Cat(const std::vector<Variable>& parts, int axis);
Variable Stack(const std::vector<Variable>& parts, int axis);
// Returns out with out[i][j] = x[index[i][j]][j] for axis 0, and likewise for
// others.
Variable Gather(const Variable& x, int axis, const Tensor& index);
// Returns a copy of x with source[i][j] added at [index[i][j]][j] for axis 0,
// and likewise for others.
Variable ScatterAdd(const Variable& x, int axis, const Tensor& index,
                    const Variable& source);
struct EmbeddingOptions {
  // The row that gets a gradient of zero; a negative number counts from the
  // end.
  std::optional<int64_t> padding = std::nullopt;
  // If true, a table that is a leaf without hooks gets a gradient of rows
  // (autograd/gradient.h).
  bool sparse = false;
};
// Looks up rows of table [V, D] by index [...] -> [..., D].
Variable Embedding(const Variable& table, const Tensor& index,
                   const EmbeddingOptions& options = {});

}  // namespace baton::autograd
