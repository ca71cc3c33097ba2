// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// Indices are i64. On the CPU an index out of range throws and names the first
// such. On a GPU, where to look would be to wait, what is taken from there is
// NaN (0 of other dtypes than floating ones), and what is sent there is
// dropped.
namespace baton::ops {

Tensor Cat(const std::vector<Tensor>& parts, int axis);
Tensor Stack(const std::vector<Tensor>& parts, int axis);
// out[i][j] = x[index[i][j]][j] for axis 0, and so on; PyTorch's gather.
Tensor Gather(const Tensor& x, int axis, const Tensor& index);
// A copy of x with x[index[i][j]][j] = source[i][j] for axis 0, and so on.
Tensor Scatter(const Tensor& x, int axis, const Tensor& index,
               const Tensor& source);
Tensor ScatterAdd(const Tensor& x, int axis, const Tensor& index,
                  const Tensor& source);
// Rows of table [V, D] by index [...] -> [..., D].
Tensor Embedding(const Tensor& table, const Tensor& index);
// The same, into `out` [..., D], which is dense and of table's dtype.
void EmbeddingInto(const Tensor& out, const Tensor& table, const Tensor& index);
// Sums rows of dy [..., D] into a zero table [rows, D], whose row `padding`
// stays zero: -1 is none.
Tensor EmbeddingBackward(const Tensor& dy, const Tensor& index, int64_t rows,
                         int64_t padding = -1);
// labels [N] i64 -> [N, classes] f32.
Tensor OneHot(const Tensor& labels, int64_t classes);

}  // namespace baton::ops
