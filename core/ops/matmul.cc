// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/matmul.h"

#include "core/cpu/matmul.h"
#include "core/cuda/matmul.h"
#include "core/ops/checks.h"

namespace baton::ops {
namespace {

void CheckPair(const char* op, const Tensor& a, const Tensor& b) {
  RequireOneDevice(op, a, b);
  Require(IsFloating(a.dtype()) && a.dtype() == b.dtype(), op,
          "expected two tensors of one floating dtype, got ", Name(a.dtype()),
          " and ", Name(b.dtype()));
}

Shape Leading(const Shape& shape) {
  return Shape(Dims(shape.begin(), shape.end() - 2));
}

}  // namespace

Tensor Matmul(const Tensor& a, const Tensor& b) {
  constexpr char kOp[] = "matmul";
  CheckPair(kOp, a, b);
  Require(a.rank() >= 2 && b.rank() >= 2 && a.dim(-1) == b.dim(-2), kOp,
          "expected [..., M, K] x [..., K, N], got ", a.shape().ToString(),
          " x ", b.shape().ToString());
  const Shape batch =
      BroadcastShapes(kOp, Leading(a.shape()), Leading(b.shape()));
  if (a.device().is_cuda()) return cuda::BatchedMatmul(a, b, batch);
  if (IsHalf(a.dtype())) {
    return cpu::BatchedMatmul(a.To(DType::kF32), b.To(DType::kF32), batch)
        .To(a.dtype());
  }
  return cpu::BatchedMatmul(a, b, batch);
}

void RequireLinear(const char* op, const Tensor& x, const Tensor& weight,
                   const Tensor& bias) {
  CheckPair(op, x, weight);
  Require(weight.rank() == 2 && x.rank() >= 1 && x.dim(-1) == weight.dim(1), op,
          "expected weight [O, I] for x [..., I] ", x.shape().ToString(),
          ", got ", weight.shape().ToString());
  if (bias.defined()) {
    CheckPair(op, x, bias);
    Require(bias.shape() == Shape({weight.dim(0)}), op, "expected bias [",
            weight.dim(0), "], got ", bias.shape().ToString());
  }
}

Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  RequireLinear("linear", x, weight, bias);
  if (x.device().is_cuda()) return cuda::Linear(x, weight, bias);
  if (IsHalf(x.dtype())) {
    const Tensor wide_bias = bias.defined() ? bias.To(DType::kF32) : bias;
    return cpu::Linear(x.To(DType::kF32), weight.To(DType::kF32), wide_bias)
        .To(x.dtype());
  }
  return cpu::Linear(x, weight, bias);
}

}  // namespace baton::ops
