// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/linear.h"

#include "core/cuda/matmul.h"
#include "core/ops/activation.h"
#include "core/ops/checks.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"

namespace baton::ops {
LinearActivationResult LinearActivation(Activation activation, const Tensor& x,
                                        const Tensor& weight,
                                        const Tensor& bias) {
  RequireLinear("linear_activation", x, weight, bias);
  if (activation == Activation::kRelu && x.device().is_cuda()) {
    const Tensor y = cuda::LinearRelu(x, weight, bias);
    if (y.defined()) return {y, y};
  }
  const Tensor z = Linear(x, weight, bias);
  const Tensor y = Activate(activation, z);
  return {y, SavesInput(activation) ? z : y};
}

Tensor LinearActivationBackward(Activation activation, const Tensor& dy,
                                const Tensor& saved) {
  return ActivateBackward(activation, dy, saved);
}

LinearGradients LinearParameterGradients(const Tensor& dy, const Tensor& x) {
  constexpr char kOp[] = "linear_backward";
  RequireOneDevice(kOp, dy, x);
  RequireFloating(kOp, x);
  RequireSameDType(kOp, dy, x);
  Require(x.rank() == 2 && dy.rank() == 2 && x.dim(0) == dy.dim(0), kOp,
          "expected dy [N, O] and x [N, I], got ", dy.shape().ToString(),
          " and ", x.shape().ToString());
  if (x.device().is_cuda()) {
    const auto [weight, bias] = cuda::LinearParameterGradients(dy, x);
    if (weight.defined()) return {weight, bias};
  }
  return {Matmul(dy.Transpose(0, 1), x), Sum(dy, {0})};
}

}  // namespace baton::ops
