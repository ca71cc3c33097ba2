// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/layer_norm.h"

#include <algorithm>

#include "core/cpu/layer_norm.h"
#include "core/cuda/layer_norm.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

DType StatisticsOf(const Tensor& x) {
  return x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
}

TensorOptions OptionsOf(const Tensor& x) {
  return {.dtype = StatisticsOf(x), .device = x.device()};
}

void CheckRows(const char* op, const Tensor& x, const Tensor& gamma) {
  RequireOneDevice(op, x, gamma);
  RequireFloating(op, x);
  RequireFloating(op, gamma);
  const Shape& shape = gamma.shape();
  const bool fits =
      shape.rank() > 0 && shape.numel() > 0 && shape.rank() <= x.rank() &&
      std::equal(shape.begin(), shape.end(), x.shape().end() - shape.rank());
  Require(fits, op, "expected x to end in gamma's shape ", shape.ToString(),
          ", got ", x.shape().ToString());
}

void CheckNormGradient(const char* op, const Tensor& dy, const Tensor& x,
                       const Tensor& gamma, const LayerNormResult& forward) {
  CheckRows(op, x, gamma);
  RequireOneDevice(op, x, dy, forward.mean, forward.inverse_stddev);
  RequireSameShape(op, dy, x);
  RequireSameDType(op, dy, x);
  const Shape rows = {x.numel() / gamma.numel()};
  Require(
      forward.mean.shape() == rows && forward.inverse_stddev.shape() == rows,
      op, "expected the forward's statistics ", rows.ToString(), ", got ",
      forward.mean.shape().ToString());
}

// [rows, width], dense.
Tensor AsRows(const Tensor& x, const Tensor& gamma) {
  const int64_t width = gamma.numel();
  return x.Contiguous().Reshape({x.numel() / width, width});
}

// [width], dense, in the statistics' dtype.
Tensor AsRow(const Tensor& parameter, const Tensor& x) {
  return parameter.To(StatisticsOf(x)).Contiguous().Flatten();
}

}  // namespace

LayerNormResult LayerNorm(const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, double eps) {
  constexpr char kOp[] = "layer_norm";
  CheckRows(kOp, x, gamma);
  RequireOneDevice(kOp, x, beta);
  RequireFloating(kOp, beta);
  RequireSameShape(kOp, beta, gamma);
  const Tensor rows = AsRows(x, gamma);
  const Tensor y = Tensor::EmptyLike(rows);
  const LayerNormResult result = {y.Reshape(x.shape()),
                                  Tensor::Empty({rows.dim(0)}, OptionsOf(x)),
                                  Tensor::Empty({rows.dim(0)}, OptionsOf(x))};
  KernelFor(x, cpu::LayerNorm, cuda::LayerNorm)(
      y, result.mean, result.inverse_stddev, rows, AsRow(gamma, x),
      AsRow(beta, x), eps);
  return result;
}

Tensor LayerNormBackward(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                         const LayerNormResult& forward) {
  CheckNormGradient("layer_norm_backward", dy, x, gamma, forward);
  const Tensor rows = AsRows(x, gamma);
  const Tensor dx = Tensor::EmptyLike(rows);
  KernelFor(x, cpu::LayerNormBackward, cuda::LayerNormBackward)(
      dx, AsRows(dy, gamma), rows, AsRow(gamma, x), forward.mean,
      forward.inverse_stddev);
  return dx.Reshape(x.shape());
}

LayerNormGradients LayerNormParameterGradients(const Tensor& dy,
                                               const Tensor& x,
                                               const Tensor& gamma,
                                               const LayerNormResult& forward) {
  CheckNormGradient("layer_norm_backward", dy, x, gamma, forward);
  const LayerNormGradients grads = {Tensor::Empty(gamma.shape(), OptionsOf(x)),
                                    Tensor::Empty(gamma.shape(), OptionsOf(x))};
  KernelFor(x, cpu::LayerNormParameters, cuda::LayerNormParameters)(
      grads.dgamma, grads.dbeta, AsRows(dy, gamma), AsRows(x, gamma),
      forward.mean, forward.inverse_stddev);
  return grads;
}

}  // namespace baton::ops
