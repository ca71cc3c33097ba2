// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton {

// The last two axes of a tensor as a matrix product reads them: the elements of
// a row (or of a column, if transposed) are adjacent, and rows (columns) are
// `stride` elements apart. Invalid if the strides allow neither.
struct MatrixView {
  int64_t stride = 0;
  bool transposed = false;
  bool valid = false;
};
MatrixView ViewMatrix(const Tensor& tensor);

// Returns `tensor`, copied only if no view can express its last two axes.
Tensor AsMatrices(const Tensor& tensor);
// Like the above, expanded over the leading axes `batch`.
Tensor AsMatrices(const Tensor& tensor, const Shape& batch);

}  // namespace baton
