// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/pool.h"

#include "core/cpu/pool.h"
#include "core/cuda/pool.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

void CheckImages(const char* op, const Tensor& x) {
  RequireOneDevice(op, x);
  Require(IsFloating(x.dtype()), op, "expected a floating dtype, got ",
          Name(x.dtype()));
  Require(x.rank() == 4, op, "expected [N, C, H, W], got ",
          x.shape().ToString());
}

// Returns the shape of y; throws unless the windows fit.
Shape CheckWindows(const char* op, const Shape& x,
                   const Pool2dOptions& options) {
  Require(x.rank() == 4, op, "expected x [N, C, H, W], got ", x.ToString());
  Dims y = {x[0], x[1]};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t kernel = options.kernel[i], padding = options.padding[i];
    Require(kernel > 0 && options.stride[i] > 0 && padding >= 0 &&
                2 * padding <= kernel,
            op,
            "expected kernel and stride above 0 and padding from 0 to half "
            "of the kernel, got kernel ",
            kernel, ", stride ", options.stride[i], ", padding ", padding);
    const int64_t room = x[static_cast<int>(i) + 2] + 2 * padding - kernel;
    Require(room >= 0, op, "expected x at least as large as the kernel ",
            kernel, " with padding ", padding, ", got ", x.ToString());
    y.push_back(room / options.stride[i] + 1);
  }
  return Shape(y);
}

void CheckPoolGradient(const char* op, const Tensor& dy, const Shape& y) {
  CheckImages(op, dy);
  Require(dy.shape() == y, op, "expected dy ", y.ToString(), ", got ",
          dy.shape().ToString());
}

// On the CPU f16 and bf16 are pooled in f32.
Tensor ForKernel(const Tensor& x) {
  if (x.device().is_cuda() || x.dtype() == DType::kF64) return x;
  return x.To(DType::kF32);
}

Windows FixedWindows(const Shape& x, const Shape& y,
                     const Pool2dOptions& options) {
  const auto axis = [&](size_t i) {
    const int at = static_cast<int>(i) + 2;
    return WindowAxis<int64_t>{.size = x[at],
                               .cells = y[at],
                               .kernel = options.kernel[i],
                               .stride = options.stride[i],
                               .padding = options.padding[i]};
  };
  return {.rows = axis(0),
          .columns = axis(1),
          .divisor = options.kernel[0] * options.kernel[1]};
}

Windows AdaptiveWindows(const Shape& x, int64_t height, int64_t width) {
  return {.rows = {.size = x[2], .cells = height},
          .columns = {.size = x[3], .cells = width}};
}

}  // namespace

MaxPool2dResult MaxPool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr char kOp[] = "max_pool2d";
  CheckImages(kOp, x);
  const Shape y = CheckWindows(kOp, x.shape(), options);
  MaxPool2dResult result =
      KernelFor(x, cpu::MaxPool, cuda::MaxPool)(ForKernel(x), y, options);
  result.y = result.y.To(x.dtype());
  return result;
}

Tensor MaxPool2dBackward(const Tensor& dy, const Tensor& workspace,
                         const Shape& x_shape, const Pool2dOptions& options) {
  constexpr char kOp[] = "max_pool2d_backward";
  const Shape y = CheckWindows(kOp, x_shape, options);
  CheckPoolGradient(kOp, dy, y);
  Require(workspace.defined() && workspace.shape() == y &&
              (workspace.dtype() == DType::kI32 ||
               (dy.device().is_cuda() && workspace.dtype() == DType::kU8)),
          kOp, "expected the forward's workspace for y ", y.ToString());
  RequireOneDevice(kOp, dy, workspace);
  return KernelFor(dy, cpu::MaxPoolBackward, cuda::MaxPoolBackward)(
             ForKernel(dy), workspace, x_shape, options)
      .To(dy.dtype());
}

Tensor AvgPool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr char kOp[] = "avg_pool2d";
  CheckImages(kOp, x);
  const Shape y = CheckWindows(kOp, x.shape(), options);
  return KernelFor(x, cpu::MeanPool, cuda::MeanPool)(
             ForKernel(x), FixedWindows(x.shape(), y, options))
      .To(x.dtype());
}

Tensor AvgPool2dBackward(const Tensor& dy, const Shape& x_shape,
                         const Pool2dOptions& options) {
  constexpr char kOp[] = "avg_pool2d_backward";
  const Shape y = CheckWindows(kOp, x_shape, options);
  CheckPoolGradient(kOp, dy, y);
  return KernelFor(dy, cpu::MeanPoolBackward, cuda::MeanPoolBackward)(
             ForKernel(dy), x_shape, FixedWindows(x_shape, y, options),
             dy.SuggestFormat())
      .To(dy.dtype());
}

Tensor AdaptiveAvgPool2d(const Tensor& x, int64_t height, int64_t width) {
  constexpr char kOp[] = "adaptive_avg_pool2d";
  CheckImages(kOp, x);
  Require(height > 0 && width > 0 && x.dim(2) > 0 && x.dim(3) > 0, kOp,
          "expected a size above 0 and x [N, C, H, W] with pixels, got ",
          height, " by ", width, " and x ", x.shape().ToString());
  return KernelFor(x, cpu::MeanPool, cuda::MeanPool)(
             ForKernel(x), AdaptiveWindows(x.shape(), height, width))
      .To(x.dtype());
}

Tensor AdaptiveAvgPool2dBackward(const Tensor& dy, const Tensor& x) {
  constexpr char kOp[] = "adaptive_avg_pool2d_backward";
  CheckImages(kOp, x);
  CheckImages(kOp, dy);
  RequireOneDevice(kOp, dy, x);
  Require(dy.dim(0) == x.dim(0) && dy.dim(1) == x.dim(1) && dy.dim(2) > 0 &&
              dy.dim(3) > 0,
          kOp, "expected dy [", x.dim(0), ", ", x.dim(1), ", h, w] for x ",
          x.shape().ToString(), ", got ", dy.shape().ToString());
  // The result has x's memory order, which dy alone does not show if it has one
  // cell.
  return KernelFor(dy, cpu::MeanPoolBackward, cuda::MeanPoolBackward)(
             ForKernel(dy), x.shape(),
             AdaptiveWindows(x.shape(), dy.dim(2), dy.dim(3)),
             x.SuggestFormat())
      .To(dy.dtype());
}

}  // namespace baton::ops
