// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/conv_transpose.h"

#include <algorithm>

#include "core/ops/arithmetic.h"
#include "core/ops/checks.h"
#include "core/ops/conv.h"
#include "core/status.h"

namespace baton::ops {
namespace {

constexpr char kTransposeOp[] = "conv_transpose2d";

Conv2dOptions OfTheConvolution(const ConvTranspose2dOptions& options) {
  return {.stride = options.stride,
          .padding = options.padding,
          .dilation = options.dilation,
          .groups = options.groups};
}

void CheckTransposeOptions(const ConvTranspose2dOptions& o) {
  for (size_t i = 0; i < 2; ++i) {
    Require(o.stride[i] > 0 && o.dilation[i] > 0 && o.padding[i] >= 0,
            kTransposeOp,
            "expected stride and dilation above 0 and padding from 0, got ",
            "stride ", o.stride[i], ", dilation ", o.dilation[i], ", padding ",
            o.padding[i]);
    Require(o.output_padding[i] >= 0 &&
                o.output_padding[i] < std::max(o.stride[i], o.dilation[i]),
            kTransposeOp, "expected output padding from 0 and below stride ",
            o.stride[i], " or dilation ", o.dilation[i], ", got ",
            o.output_padding[i]);
  }
  Require(o.groups > 0, kTransposeOp, "expected groups above 0, got ",
          o.groups);
}

// The shape of y and that of its convolution. The latter is x's, enlarged by
// one row or column for each full stride of output padding.
struct TransposedShapes {
  Shape y, convolved;
};
TransposedShapes ShapesOf(const Shape& x, const Shape& weight,
                          const ConvTranspose2dOptions& options) {
  CheckTransposeOptions(options);
  Require(x.rank() == 4, kTransposeOp, "expected x [N, C, H, W], got ",
          x.ToString());
  Require(weight.rank() == 4 && weight[0] == x[1] &&
              weight[0] % options.groups == 0 && weight.numel() > 0,
          kTransposeOp, "expected weight [C, O/groups, kH, kW] for x ",
          x.ToString(), " and groups ", options.groups, ", got ",
          weight.ToString());
  Dims y = {x[0], weight[1] * options.groups}, convolved = {x[0], x[1]};
  for (size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t size = (x[axis] - 1) * options.stride[i] -
                         2 * options.padding[i] +
                         options.dilation[i] * (weight[axis] - 1) +
                         options.output_padding[i] + 1;
    Require(x[axis] > 0 && size > 0, kTransposeOp,
            "expected a result with elements, got ", size, " on axis ", axis,
            " for x ", x.ToString());
    y.push_back(size);
    convolved.push_back(x[axis] +
                        options.output_padding[i] / options.stride[i]);
  }
  return {Shape(std::move(y)), Shape(std::move(convolved))};
}

void CheckTransposeDType(const Tensor& a, const Tensor& b) {
  RequireOneDevice(kTransposeOp, a, b);
  RequireFloating(kTransposeOp, a);
  RequireSameDType(kTransposeOp, a, b);
}

// Returns x with zeros after its last row and column, up to `shape`.
Tensor Grown(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Tensor grown = Tensor::Zeros(
      shape,
      {.dtype = x.dtype(), .device = x.device(), .format = x.SuggestFormat()});
  grown.Slice(2, 0, x.dim(2)).Slice(3, 0, x.dim(3)).CopyFrom(x);
  return grown;
}

}  // namespace

Tensor ConvTranspose2d(const Tensor& x, const Tensor& weight,
                       const Tensor& bias,
                       const ConvTranspose2dOptions& options) {
  CheckTransposeDType(x, weight);
  const auto [shape, convolved] = ShapesOf(x.shape(), weight.shape(), options);
  if (bias.defined()) {
    CheckTransposeDType(x, bias);
    Require(bias.shape() == Shape({shape[1]}), kTransposeOp, "expected bias [",
            shape[1], "], got ", bias.shape().ToString());
  }
  const Tensor y = Conv2dBackwardInput(Grown(x, convolved), weight, shape,
                                       OfTheConvolution(options));
  if (bias.defined()) AddInto(y, bias.Reshape({1, shape[1], 1, 1}));
  return y;
}

Tensor ConvTranspose2dBackwardInput(const Tensor& dy, const Tensor& weight,
                                    const ConvTranspose2dOptions& options) {
  CheckTransposeDType(dy, weight);
  CheckTransposeOptions(options);
  const Tensor dx = Conv2d(dy, weight, Tensor(), OfTheConvolution(options));
  return dx
      .Slice(2, 0, dx.dim(2) - options.output_padding[0] / options.stride[0])
      .Slice(3, 0, dx.dim(3) - options.output_padding[1] / options.stride[1]);
}

Tensor ConvTranspose2dBackwardWeight(const Tensor& dy, const Tensor& x,
                                     const Shape& weight_shape,
                                     const ConvTranspose2dOptions& options,
                                     MemoryFormat order) {
  CheckTransposeDType(dy, x);
  const auto [y, convolved] = ShapesOf(x.shape(), weight_shape, options);
  Require(dy.shape() == y, kTransposeOp, "expected dy ", y.ToString(), ", got ",
          dy.shape().ToString());
  return Conv2dBackwardWeight(Grown(x, convolved), dy, weight_shape,
                              OfTheConvolution(options), order);
}

}  // namespace baton::ops
