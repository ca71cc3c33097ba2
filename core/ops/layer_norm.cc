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

void CheckGroups(const char* op, const Tensor& x, int64_t groups,
                 const Tensor& gamma) {
  RequireOneDevice(op, x, gamma);
  RequireFloating(op, x);
  RequireFloating(op, gamma);
  Require(
      x.rank() >= 2 && groups > 0 && x.dim(1) > 0 && x.dim(1) % groups == 0 &&
          gamma.shape() == Shape({x.dim(1)}),
      op, "expected x [N, C, ...], groups that divide C and gamma [C], got ",
      x.shape().ToString(), ", ", groups, " and ", gamma.shape().ToString());
}

// An input as kernels read it: its dense rows and the number of groups that
// each image's channels form.
struct NormRows {
  Tensor x;  // [rows, width]
  int64_t groups;
};

NormRows AsRows(const Tensor& x, const Tensor& gamma) {
  const int64_t width = gamma.numel();
  return {x.Contiguous().Reshape({x.numel() / width, width}), 1};
}

NormRows AsGroups(const Tensor& x, int64_t groups) {
  const int64_t rows = x.dim(0) * groups;
  int64_t width = x.dim(1) / groups;
  for (int d = 2; d < x.rank(); ++d) width *= x.dim(d);
  return {x.Contiguous().Reshape({rows, width}), groups};
}

void CheckNormGradient(const char* op, const Tensor& dy, const Tensor& x,
                       int64_t rows, const LayerNormResult& forward) {
  RequireOneDevice(op, x, dy, forward.mean, forward.inverse_stddev);
  RequireSameShape(op, dy, x);
  RequireSameDType(op, dy, x);
  const Shape shape = {rows};
  Require(
      forward.mean.shape() == shape && forward.inverse_stddev.shape() == shape,
      op, "expected the forward's statistics ", shape.ToString(), ", got ",
      forward.mean.shape().ToString());
}

// Returns the parameter as [width], dense and in the dtype of the statistics.
Tensor AsRow(const Tensor& parameter, const Tensor& x) {
  return parameter.To(StatisticsOf(x)).Contiguous().Flatten();
}

LayerNormResult Normalise(const char* op, const Tensor& x, const NormRows& rows,
                          const Tensor& gamma, const Tensor& beta, double eps) {
  RequireOneDevice(op, x, beta);
  RequireFloating(op, beta);
  RequireSameShape(op, beta, gamma);
  const Tensor y = Tensor::EmptyLike(rows.x);
  const LayerNormResult result = {y.Reshape(x.shape()),
                                  Tensor::Empty({rows.x.dim(0)}, OptionsOf(x)),
                                  Tensor::Empty({rows.x.dim(0)}, OptionsOf(x))};
  if (x.numel() == 0) return result;
  KernelFor(x, cpu::LayerNorm, cuda::LayerNorm)(
      y, result.mean, result.inverse_stddev, rows.x, AsRow(gamma, x),
      AsRow(beta, x), eps, rows.groups);
  return result;
}

Tensor InputGradient(const char* op, const Tensor& dy, const Tensor& x,
                     const NormRows& rows, const Tensor& gamma,
                     const LayerNormResult& forward) {
  CheckNormGradient(op, dy, x, rows.x.dim(0), forward);
  const Tensor dx = Tensor::EmptyLike(rows.x);
  if (x.numel() == 0) return dx.Reshape(x.shape());
  KernelFor(x, cpu::LayerNormBackward, cuda::LayerNormBackward)(
      dx, dy.Contiguous().Reshape(rows.x.shape()), rows.x, AsRow(gamma, x),
      forward.mean, forward.inverse_stddev, rows.groups);
  return dx.Reshape(x.shape());
}

LayerNormGradients ParameterGradients(const char* op, const Tensor& dy,
                                      const Tensor& x, const NormRows& rows,
                                      const Tensor& gamma,
                                      const LayerNormResult& forward) {
  CheckNormGradient(op, dy, x, rows.x.dim(0), forward);
  const LayerNormGradients grads = {Tensor::Empty(gamma.shape(), OptionsOf(x)),
                                    Tensor::Empty(gamma.shape(), OptionsOf(x))};
  KernelFor(x, cpu::LayerNormParameters, cuda::LayerNormParameters)(
      grads.dgamma, grads.dbeta, dy.Contiguous().Reshape(rows.x.shape()),
      rows.x, forward.mean, forward.inverse_stddev, rows.groups);
  return grads;
}

constexpr char kLayerBackward[] = "layer_norm_backward";
constexpr char kGroupBackward[] = "group_norm_backward";

}  // namespace

LayerNormResult LayerNorm(const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, double eps) {
  constexpr char kOp[] = "layer_norm";
  CheckRows(kOp, x, gamma);
  return Normalise(kOp, x, AsRows(x, gamma), gamma, beta, eps);
}

Tensor LayerNormBackward(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                         const LayerNormResult& forward) {
  CheckRows(kLayerBackward, x, gamma);
  return InputGradient(kLayerBackward, dy, x, AsRows(x, gamma), gamma, forward);
}

LayerNormGradients LayerNormParameterGradients(const Tensor& dy,
                                               const Tensor& x,
                                               const Tensor& gamma,
                                               const LayerNormResult& forward) {
  CheckRows(kLayerBackward, x, gamma);
  return ParameterGradients(kLayerBackward, dy, x, AsRows(x, gamma), gamma,
                            forward);
}

LayerNormResult GroupNorm(const Tensor& x, int64_t groups, const Tensor& gamma,
                          const Tensor& beta, double eps) {
  constexpr char kOp[] = "group_norm";
  CheckGroups(kOp, x, groups, gamma);
  return Normalise(kOp, x, AsGroups(x, groups), gamma, beta, eps);
}

Tensor GroupNormBackward(const Tensor& dy, const Tensor& x, int64_t groups,
                         const Tensor& gamma, const LayerNormResult& forward) {
  CheckGroups(kGroupBackward, x, groups, gamma);
  return InputGradient(kGroupBackward, dy, x, AsGroups(x, groups), gamma,
                       forward);
}

LayerNormGradients GroupNormParameterGradients(const Tensor& dy,
                                               const Tensor& x, int64_t groups,
                                               const Tensor& gamma,
                                               const LayerNormResult& forward) {
  CheckGroups(kGroupBackward, x, groups, gamma);
  return ParameterGradients(kGroupBackward, dy, x, AsGroups(x, groups), gamma,
                            forward);
}

}  // namespace baton::ops
