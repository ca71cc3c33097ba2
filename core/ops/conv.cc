// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/conv.h"

#include "core/cpu/conv.h"
#include "core/cuda/conv.h"
#include "core/ops/arithmetic.h"
#include "core/ops/checks.h"

namespace baton::ops {
namespace {

void CheckOptions(const char* op, const Conv2dOptions& options) {
  for (size_t i = 0; i < 2; ++i) {
    Require(options.stride[i] > 0 && options.dilation[i] > 0 &&
                options.padding[i] >= 0,
            op, "expected stride and dilation above 0 and padding from 0, got ",
            "stride ", options.stride[i], ", dilation ", options.dilation[i],
            ", padding ", options.padding[i]);
  }
  Require(options.groups > 0, op, "expected groups above 0, got ",
          options.groups);
}

void CheckDType(const char* op, const Tensor& a, const char* name,
                const Tensor& b) {
  RequireOneDevice(op, a, b);
  Require(IsFloating(a.dtype()), op, "expected a floating dtype, got ",
          Name(a.dtype()));
  Require(a.dtype() == b.dtype(), op, "expected ", name, " of dtype ",
          Name(a.dtype()), ", got ", Name(b.dtype()));
}

// Returns the shape of y; throws unless x, weight and options fit together.
Shape CheckShapes(const char* op, const Shape& x, const Shape& weight,
                  const Conv2dOptions& options) {
  CheckOptions(op, options);
  Require(x.rank() == 4, op, "expected x [N, C, H, W], got ", x.ToString());
  Require(weight.rank() == 4 && weight[1] * options.groups == x[1] &&
              weight[0] % options.groups == 0 && weight.numel() > 0,
          op, "expected weight [O, C/groups, kH, kW] for x ", x.ToString(),
          " and groups ", options.groups, ", got ", weight.ToString());
  Dims y = {x[0], weight[0]};
  for (size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t reach = options.dilation[i] * (weight[axis] - 1) + 1;
    const int64_t room = x[axis] + 2 * options.padding[i];
    Require(room >= reach, op, "expected x at least as large as the kernel: x ",
            x.ToString(), " with padding ", options.padding[i], ", weight ",
            weight.ToString(), " with dilation ", options.dilation[i]);
    y.push_back((room - reach) / options.stride[i] + 1);
  }
  return Shape(y);
}

void CheckConvGradient(const char* op, const Tensor& dy, const Shape& y) {
  Require(dy.shape() == y, op, "expected dy ", y.ToString(), ", got ",
          dy.shape().ToString());
}

Tensor Widened(const Tensor& x) { return x.defined() ? x.To(DType::kF32) : x; }

}  // namespace

Tensor Conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  constexpr char kOp[] = "conv2d";
  CheckDType(kOp, x, "weight", weight);
  const Shape y = CheckShapes(kOp, x.shape(), weight.shape(), options);
  if (bias.defined()) {
    CheckDType(kOp, x, "bias", bias);
    Require(bias.shape() == Shape({y[1]}), kOp, "expected bias [", y[1],
            "], got ", bias.shape().ToString());
  }
  if (y.numel() == 0) {
    return Tensor::Empty(y, {.dtype = x.dtype(),
                             .device = x.device(),
                             .format = x.SuggestFormat()});
  }
  if (x.device().is_cuda()) return cuda::ConvForward(x, weight, bias, options);
  if (x.dtype() == DType::kF64)
    return cpu::ConvForwardF64(x, weight, bias, options);
  if (IsHalf(x.dtype())) {
    return cpu::ConvForwardF32(Widened(x), Widened(weight), Widened(bias),
                               options)
        .To(x.dtype());
  }
  return cpu::ConvForwardF32(x, weight, bias, options);
}

Tensor Conv2dBackwardInput(const Tensor& dy, const Tensor& weight,
                           const Shape& x_shape, const Conv2dOptions& options) {
  constexpr char kOp[] = "conv2d_backward_input";
  CheckDType(kOp, dy, "weight", weight);
  CheckConvGradient(kOp, dy,
                    CheckShapes(kOp, x_shape, weight.shape(), options));
  if (dy.numel() == 0) {
    return Tensor::Zeros(x_shape, {.dtype = dy.dtype(), .device = dy.device()});
  }
  if (dy.device().is_cuda())
    return cuda::ConvBackwardInput(dy, weight, x_shape, options);
  if (dy.dtype() == DType::kF64)
    return cpu::ConvBackwardInputF64(dy, weight, x_shape, options);
  if (IsHalf(dy.dtype())) {
    return cpu::ConvBackwardInputF32(Widened(dy), Widened(weight), x_shape,
                                     options)
        .To(dy.dtype());
  }
  return cpu::ConvBackwardInputF32(dy, weight, x_shape, options);
}

void Conv2dAddBackwardInput(const Tensor& sum, const Tensor& dy,
                            const Tensor& weight,
                            const Conv2dOptions& options) {
  constexpr char kOp[] = "conv2d_backward_input";
  CheckDType(kOp, dy, "sum", sum);
  if (dy.device().is_cpu() || dy.numel() == 0) {
    AddInto(sum, Conv2dBackwardInput(dy, weight, sum.shape(), options));
    return;
  }
  CheckDType(kOp, dy, "weight", weight);
  CheckConvGradient(kOp, dy,
                    CheckShapes(kOp, sum.shape(), weight.shape(), options));
  sum.PrepareWrite();
  cuda::ConvAddBackwardInput(dy, weight, options, sum);
}

Tensor Conv2dBackwardWeight(const Tensor& dy, const Tensor& x,
                            const Shape& weight_shape,
                            const Conv2dOptions& options, MemoryFormat order) {
  constexpr char kOp[] = "conv2d_backward_weight";
  CheckDType(kOp, dy, "x", x);
  CheckConvGradient(kOp, dy,
                    CheckShapes(kOp, x.shape(), weight_shape, options));
  if (dy.numel() == 0) {
    return Tensor::Zeros(
        weight_shape,
        {.dtype = dy.dtype(), .device = dy.device(), .format = order});
  }
  if (dy.device().is_cuda())
    return cuda::ConvBackwardWeight(dy, x, weight_shape, options, order);
  if (dy.dtype() == DType::kF64)
    return cpu::ConvBackwardWeightF64(dy, x, weight_shape, options, order);
  if (IsHalf(dy.dtype())) {
    return cpu::ConvBackwardWeightF32(Widened(dy), Widened(x), weight_shape,
                                      options, order)
        .To(dy.dtype());
  }
  return cpu::ConvBackwardWeightF32(dy, x, weight_shape, options, order);
}

}  // namespace baton::ops
