// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// These ops read or write at indices, which are i64. On the CPU an index out of
// range throws Error, which names the first one. On a GPU a check would have to
// wait for the GPU, so nothing throws: reading such an index gives NaN (0 for
// dtypes that are not floating), and what is written to it is dropped.
namespace baton::ops {

Tensor Cat(const std::vector<Tensor>& parts, int axis);
Tensor Stack(const std::vector<Tensor>& parts, int axis);
// Returns out with out[i][j] = x[index[i][j]][j] for axis 0, and likewise for
// others, as PyTorch's gather does.
Tensor Gather(const Tensor& x, int axis, const Tensor& index);
// Returns a copy of x with x[index[i][j]][j] = source[i][j] for axis 0, and
// likewise for others. ScatterAdd adds instead.
Tensor Scatter(const Tensor& x, int axis, const Tensor& index,
               const Tensor& source);
Tensor ScatterAdd(const Tensor& x, int axis, const Tensor& index,
                  const Tensor& source);
// Returns the rows of table [V, D] that index [...] names, as [..., D].
Tensor Embedding(const Tensor& table, const Tensor& index);
// Like the above, but writes to `out` [..., D], which must be dense and of
// table's dtype.
void EmbeddingInto(const Tensor& out, const Tensor& table, const Tensor& index);
// Returns the gradient of the table, [rows, D]: each row is the sum of the rows
// of dy [..., D] that were looked up from it. Row `padding` stays zero; -1
// means none.
Tensor EmbeddingBackward(const Tensor& dy, const Tensor& index, int64_t rows,
                         int64_t padding = -1);
// Returns f32 [N, classes] for labels i64 [N]: 1 at each label, 0 elsewhere.
Tensor OneHot(const Tensor& labels, int64_t classes);

}  // namespace baton::ops
