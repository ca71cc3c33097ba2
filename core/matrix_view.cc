// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/matrix_view.h"

namespace baton {

MatrixView ViewMatrix(const Tensor& tensor) {
  const size_t last = tensor.strides().size() - 1;
  const int64_t rows = tensor.dim(-2), cols = tensor.dim(-1);
  const int64_t down = tensor.strides()[last - 1];
  const int64_t right = tensor.strides()[last];
  // The stride of an axis with one element is irrelevant.
  if ((right == 1 || cols == 1) && (down >= cols || rows == 1)) {
    return {.stride = rows == 1 ? cols : down, .valid = true};
  }
  if ((down == 1 || rows == 1) && (right >= rows || cols == 1)) {
    return {
        .stride = cols == 1 ? rows : right, .transposed = true, .valid = true};
  }
  return {};
}

Tensor AsMatrices(const Tensor& tensor) {
  return ViewMatrix(tensor).valid ? tensor : tensor.Contiguous();
}

Tensor AsMatrices(const Tensor& tensor, const Shape& batch) {
  Dims dims = batch.dims();
  dims.push_back(tensor.dim(-2));
  dims.push_back(tensor.dim(-1));
  return AsMatrices(tensor).Expand(Shape(dims));
}

}  // namespace baton
