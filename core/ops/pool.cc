// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/pool.h"

#include <algorithm>

#include "core/cpu/pool.h"
#include "core/ops/checks.h"

namespace baton::ops {
namespace {

void CheckInput(const char* op, const Tensor& x) {
  RequireOneDevice(op, x);
  Require(IsFloating(x.dtype()), op, "expected a floating dtype, got ",
          Name(x.dtype()));
  Require(x.rank() == 4, op, "expected [N, C, H, W], got ",
          x.shape().ToString());
}

// Throws unless the windows fit; the shape of y.
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

void CheckGradient(const char* op, const Tensor& dy, const Shape& y) {
  CheckInput(op, dy);
  Require(dy.shape() == y, op, "expected dy ", y.ToString(), ", got ",
          dy.shape().ToString());
}

// f16 and bf16 are pooled in f32.
DType ComputeDType(const Tensor& x) {
  return x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
}

Windows FixedWindows(const Shape& x, const Shape& y,
                     const Pool2dOptions& options) {
  Windows windows;
  windows.divisor = options.kernel[0] * options.kernel[1];
  auto fill = [&](size_t i, std::vector<int64_t>& starts,
                  std::vector<int64_t>& ends) {
    const int axis = static_cast<int>(i) + 2;
    for (int64_t cell = 0; cell < y[axis]; ++cell) {
      const int64_t start = cell * options.stride[i] - options.padding[i];
      starts.push_back(std::max<int64_t>(start, 0));
      ends.push_back(std::min(start + options.kernel[i], x[axis]));
    }
  };
  fill(0, windows.row_start, windows.row_end);
  fill(1, windows.column_start, windows.column_end);
  return windows;
}

Windows AdaptiveWindows(const Shape& x, int64_t height, int64_t width) {
  Windows windows;
  auto fill = [](int64_t size, int64_t cells, std::vector<int64_t>& starts,
                 std::vector<int64_t>& ends) {
    for (int64_t cell = 0; cell < cells; ++cell) {
      starts.push_back(cell * size / cells);
      ends.push_back(((cell + 1) * size + cells - 1) / cells);
    }
  };
  fill(x[2], height, windows.row_start, windows.row_end);
  fill(x[3], width, windows.column_start, windows.column_end);
  return windows;
}

}  // namespace

MaxPool2dResult MaxPool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr char kOp[] = "max_pool2d";
  CheckInput(kOp, x);
  const Shape y = CheckWindows(kOp, x.shape(), options);
  MaxPool2dResult result = cpu::MaxPool(x.To(ComputeDType(x)), y, options);
  result.y = result.y.To(x.dtype());
  return result;
}

Tensor MaxPool2dBackward(const Tensor& dy, const MaxPool2dResult& forward,
                         const Tensor& x, const Pool2dOptions& options) {
  constexpr char kOp[] = "max_pool2d_backward";
  const Shape y = CheckWindows(kOp, x.shape(), options);
  CheckGradient(kOp, dy, y);
  Require(forward.workspace.defined() && forward.workspace.shape() == y &&
              forward.workspace.dtype() == DType::kI32,
          kOp, "expected the forward's workspace for y ", y.ToString());
  return cpu::MaxPoolBackward(dy.To(ComputeDType(dy)), forward.workspace,
                              x.shape(), options)
      .To(dy.dtype());
}

Tensor AvgPool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr char kOp[] = "avg_pool2d";
  CheckInput(kOp, x);
  const Shape y = CheckWindows(kOp, x.shape(), options);
  return cpu::MeanPool(x.To(ComputeDType(x)),
                       FixedWindows(x.shape(), y, options))
      .To(x.dtype());
}

Tensor AvgPool2dBackward(const Tensor& dy, const Shape& x_shape,
                         const Pool2dOptions& options) {
  constexpr char kOp[] = "avg_pool2d_backward";
  const Shape y = CheckWindows(kOp, x_shape, options);
  CheckGradient(kOp, dy, y);
  return cpu::MeanPoolBackward(dy.To(ComputeDType(dy)), x_shape,
                               FixedWindows(x_shape, y, options),
                               dy.SuggestFormat())
      .To(dy.dtype());
}

Tensor AdaptiveAvgPool2d(const Tensor& x, int64_t height, int64_t width) {
  constexpr char kOp[] = "adaptive_avg_pool2d";
  CheckInput(kOp, x);
  Require(height > 0 && width > 0 && x.dim(2) > 0 && x.dim(3) > 0, kOp,
          "expected a size above 0 and x [N, C, H, W] with pixels, got ",
          height, " by ", width, " and x ", x.shape().ToString());
  return cpu::MeanPool(x.To(ComputeDType(x)),
                       AdaptiveWindows(x.shape(), height, width))
      .To(x.dtype());
}

Tensor AdaptiveAvgPool2dBackward(const Tensor& dy, const Tensor& x) {
  constexpr char kOp[] = "adaptive_avg_pool2d_backward";
  CheckInput(kOp, x);
  CheckInput(kOp, dy);
  Require(dy.dim(0) == x.dim(0) && dy.dim(1) == x.dim(1) && dy.dim(2) > 0 &&
              dy.dim(3) > 0,
          kOp, "expected dy [", x.dim(0), ", ", x.dim(1), ", h, w] for x ",
          x.shape().ToString(), ", got ", dy.shape().ToString());
  // dy of one cell says nothing of x's order, which the result keeps.
  return cpu::MeanPoolBackward(dy.To(ComputeDType(dy)), x.shape(),
                               AdaptiveWindows(x.shape(), dy.dim(2), dy.dim(3)),
                               x.SuggestFormat())
      .To(dy.dtype());
}

}  // namespace baton::ops
