// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/matmul.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

Tensor BatchedMatmul(const Tensor&, const Tensor&, const Shape&) {
  FailWithoutCuda("matmul");
}
Tensor Linear(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("linear");
}
Tensor LinearRelu(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("linear_relu");
}
LinearGradients LinearParameterGradients(const Tensor&, const Tensor&) {
  FailWithoutCuda("linear_backward");
}

}  // namespace baton::cuda
